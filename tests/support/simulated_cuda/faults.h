// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>
#include <string_view>

// What goes wrong because a test wants it to. Thread-safe, and orders nothing.
namespace millrace::test::simulated_cuda {

inline constexpr int most_devices = 16;

// What a call of the function is to return instead of doing anything; cudaSuccess: it goes on.
cudaError_t injected(const char* function);

// What killed the device; cudaSuccess while it lives.
cudaError_t death_of(int device);

// Until devices may come into use.
void wait_for_start();

// Until the function may go on.
void wait_while_held(std::string_view function);

bool copies_held();
// Counts a copy, which may kill its device.
void copy_begins(int device);

// Counts a query of an event that processes share. True if it must not see the last record.
bool query_is_stale();
void make_queries_stale(std::uint64_t every);

// By the existence of files.
void die_when_exists(const std::string& path, int error);
void hold_copies_while_exists(const std::string& path);

void forget_faults();

}  // namespace millrace::test::simulated_cuda
