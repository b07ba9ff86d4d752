// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>

namespace millrace::test::simulated_cuda {

// Of a device of the machine, by its number there; the same in every process.
std::array<char, 16> uuid_of(int physical);
// As CUDA_VISIBLE_DEVICES has it: GPU-…
std::string uuid_text(int physical);

}  // namespace millrace::test::simulated_cuda
