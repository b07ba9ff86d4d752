// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// The properties of the simulated machine. Set before CUDA is called.
namespace millrace::test::simulated_cuda {

int device_count();
std::uint64_t device_memory();
int driver_version();  // as CUDART_VERSION; 0: there is no driver
unsigned longest_pause_us();

void forget_settings();

}  // namespace millrace::test::simulated_cuda
