// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/companion.h"
#include "base/result.h"

namespace millrace::training {

// The header of a `.npy` file of NumPy: an array in C order.
struct NpyHeader {
  CompanionElement element = CompanionElement::f32;
  std::vector<std::uint64_t> shape{};
  std::uint64_t begin = 0;  // offset of the values, in bytes
};

// The most bytes that a header may have.
inline constexpr std::size_t longest_npy_header = 65'536;

// Parses the beginning of a file, at least `longest_npy_header` bytes or the whole file. Booleans
// are u8. The error is a sentence without the file's name. Pure.
Result<NpyHeader, std::string> parse_npy_header(Bytes beginning);

}  // namespace millrace::training
