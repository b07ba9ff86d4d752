// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "base/time.h"

// The work of probes on streams of the current device, besides copies. Thread-safe. Throws
// DeviceFailure.
namespace millrace::probe {

// The words of a gate, in locked pages of the host.
struct GateWords {
  std::uint32_t opened = 0;     // the host writes it
  std::uint32_t timed_out = 0;  // the device writes it
};

// A kernel that ends when `opened` is `number` or more. After `longest` it writes `number` to
// `timed_out` and ends too.
void put_gate(cudaStream_t stream, GateWords* words, std::uint32_t number, Duration longest);

// A kernel that occupies the whole device for `duration`, and adds what it could do meanwhile to
// `*work`, in device memory.
void put_spin(cudaStream_t stream, Duration duration, std::uint64_t* work);

// A kernel that reads `words` words of device memory again and again for `duration`, at least once.
// Adds to `*wrong`, in device memory, how often a word was not `expected`.
void put_reader(cudaStream_t stream, const std::byte* memory, std::size_t words,
                std::uint32_t expected, Duration duration, std::uint64_t* wrong);

// Loads a module that the driver has to compile, and unloads it. False if it cannot be loaded.
bool load_module();

}  // namespace millrace::probe
