// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/bytes.h"

// A fuzz target. libFuzzer or replay.cpp calls it once for each input.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);

namespace millrace::fuzz {

// Aborts if a condition that must hold for every input is false. Unlike assert(), also with NDEBUG.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

inline std::string_view text_of(const std::uint8_t* bytes, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

inline Bytes bytes_of(const std::uint8_t* bytes, std::size_t size) {
  return {reinterpret_cast<const std::byte*>(bytes), size};
}

// An input as a sequence of choices. At its end, all further choices are 0.
class Choices {
 public:
  Choices(const std::uint8_t* bytes, std::size_t size) : at_(bytes), end_(bytes + size) {}

  bool empty() const { return at_ == end_; }
  std::uint8_t byte() { return empty() ? 0 : *at_++; }

  // A number from 0 to `most`. Usually a small number of one byte, so that boundaries often
  // coincide; any number is possible.
  std::uint64_t number(std::uint64_t most) {
    const std::uint8_t first = byte();
    if (first < 248) return std::min<std::uint64_t>(first, most);
    std::uint64_t number = 0;
    for (int bytes = first - 247; bytes > 0; --bytes) number = number << 8 | byte();
    return std::min(number, most);
  }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

}  // namespace millrace::fuzz
