// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/gpu/cuda/kernel_machine.h"

// Tests of the kernels, for the host and for devices. A failure fails the calling test case.
namespace millrace::test {

// Each conversion, with all values of 16-bit types and random bits for f32.
void check_values(KernelMachine& machine);

// Random widths and windows, random values around the windows, and padding rows.
void check_windows(KernelMachine& machine);

// Batches of usual sizes, which need many blocks.
void check_batches(KernelMachine& machine);

// Slots of various sizes and alignments.
void check_slots(KernelMachine& machine);

// Up to some megabytes of state, in few rows and in many.
void check_arenas(KernelMachine& machine);

// No rows, no bytes.
void check_nothing(KernelMachine& machine);

}  // namespace millrace::test
