// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <random>
#include <vector>

#include "base/bytes.h"

namespace millrace {

// Calls `read` with a message damaged in many ways: cut at each length, with each bit flipped, with
// each offset-sized word overwritten, and at unaligned addresses. `read` must decode it and read
// all decoded values; the sanitizers check these reads. Each damaged message has its own
// allocation, so that a read past its end is detected.
template <class Read>
void damage(Bytes message, Read read) {
  const std::vector<std::byte> whole(message.begin(), message.end());
  for (std::size_t size = 0; size < whole.size(); ++size)
    read(Bytes(std::vector(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size))));
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    auto copy = whole;
    copy[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    read(Bytes(copy));
  }
  for (std::size_t at = 0; at + 4 <= whole.size(); at += 2)
    for (const int value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
      auto copy = whole;
      for (std::size_t i = 0; i < 4; ++i) copy[at + i] = static_cast<std::byte>(value);
      read(Bytes(copy));
    }
  for (std::size_t offset : {1U, 2U, 3U}) {
    std::vector<std::byte> copy(offset);
    copy.insert(copy.end(), whole.begin(), whole.end());
    read(Bytes(copy).subspan(offset));
  }
}

// Calls `read` with random bytes, with and without the first 8 of `message`.
template <class Read>
void random_messages(Bytes message, Read read) {
  std::mt19937 random(20240601);
  std::uniform_int_distribution<int> byte(0, 255), size(0, 300);
  for (int i = 0; i < 20'000; ++i) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(size(random)));
    for (auto& b : bytes) b = static_cast<std::byte>(byte(random));
    if (i % 2 != 0)
      for (std::size_t at = 0; at < 8 && at < bytes.size(); ++at) bytes[at] = message[at];
    read(Bytes(bytes));
  }
}

}  // namespace millrace
