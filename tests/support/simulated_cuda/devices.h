// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>

namespace millrace::test::simulated_cuda {

// The UUID of a device, by its number on the machine; the same in every process.
std::array<char, 16> uuid_of(int physical);
// The UUID in the format of CUDA_VISIBLE_DEVICES: GPU-…
std::string uuid_text(int physical);

}  // namespace millrace::test::simulated_cuda
