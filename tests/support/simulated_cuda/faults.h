// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>
#include <string_view>

// The faults that a test has requested. Thread-safe. Uses no memory order that would hide races.
namespace millrace::test::simulated_cuda {

inline constexpr int most_devices = 16;

// The error that a call of the function must return without doing anything, or cudaSuccess.
cudaError_t injected(const char* function);

// The error that killed the device; cudaSuccess while it is alive.
cudaError_t death_of(int device);

// Waits until devices may be used: see hold_starts().
void wait_for_start();

// Waits until the function may continue: see hold_queries().
void wait_while_held(std::string_view function);

bool copies_held();

// Counts a query of an event that processes share. True if it must not see the last record.
bool query_is_stale();
void make_queries_stale(std::uint64_t every);

// Faults that depend on the existence of a file.
void die_when_exists(const std::string& path, int error);
void hold_copies_while_exists(const std::string& path);

void forget_faults();

}  // namespace millrace::test::simulated_cuda
