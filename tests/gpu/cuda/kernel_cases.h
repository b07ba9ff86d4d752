// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/gpu/cuda/kernel_machine.h"

// What kernels must do wherever they run. Each fails the test case that it is called in.
namespace millrace::test {

// Every value of 16 bits, and f32 of any bits, in each conversion.
void check_values(KernelMachine& machine);

// Rows of any width, with windows anywhere in them, garbage around them, and padding rows.
void check_windows(KernelMachine& machine);

// Batches of a usual size, which take many blocks.
void check_batches(KernelMachine& machine);

// Slots of any bytes at any address.
void check_slots(KernelMachine& machine);

// State of some megabytes, in few rows and in many.
void check_arenas(KernelMachine& machine);

// No rows, no bytes.
void check_nothing(KernelMachine& machine);

}  // namespace millrace::test
