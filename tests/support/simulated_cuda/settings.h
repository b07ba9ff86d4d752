// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// What the simulated machine is like. Set before CUDA is called.
namespace millrace::test::simulated_cuda {

int device_count();
// Its number on the machine, which its UUID is made of: CUDA_VISIBLE_DEVICES may reorder them.
int physical_device(int device);
std::uint64_t device_memory();
std::uint64_t pause_seed();
unsigned longest_pause_us();
bool guarded();

// The value of CUDA_VISIBLE_DEVICES: ordinals and UUIDs up to the first that there is not.
void set_visible_devices(const char* list);

void forget_settings();

}  // namespace millrace::test::simulated_cuda
