// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// The properties of the simulated machine. Set before CUDA is called.
namespace millrace::test::simulated_cuda {

int device_count();
// The number of a device on the machine, which determines its UUID. CUDA_VISIBLE_DEVICES may
// reorder devices.
int physical_device(int device);
std::uint64_t device_memory();
int driver_version();  // as CUDART_VERSION; 0: there is no driver
std::uint64_t pause_seed();
unsigned longest_pause_us();

// Applies a value of CUDA_VISIBLE_DEVICES: ordinals and UUIDs, up to the first that does not exist.
void set_visible_devices(const char* list);

void forget_settings();

}  // namespace millrace::test::simulated_cuda
