// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace millrace::training {

// A pseudo-random permutation of 0 … size - 1, determined by (size, key): a Feistel network over a
// power of two that walks along its cycle until the value is below `size`. Needs no memory per
// element, and constant time. Immutable.
class Permutation {
 public:
  // Requires: size >= 1.
  Permutation(std::uint64_t size, std::uint64_t key);

  std::uint64_t size() const { return size_; }
  // Requires: i < size().
  std::uint64_t operator[](std::uint64_t i) const {
    if (size_ == 1) return 0;
    do i = permuted(i);
    while (i >= size_);
    return i;
  }
  // The place of a value: (*this)[place_of(i)] is i. Requires: i < size().
  std::uint64_t place_of(std::uint64_t i) const {
    if (size_ == 1) return 0;
    do i = unpermuted(i);
    while (i >= size_);
    return i;
  }

 private:
  static constexpr std::size_t rounds = 6;

  // A number that is drawn for each value: pairs of values are independent.
  struct Round {
    std::uint64_t factor = 0, summand = 0;
    std::uint64_t operator()(std::uint64_t value) const { return (value * factor + summand) >> 32; }
  };

  std::uint64_t permuted(std::uint64_t value) const {
    std::uint64_t high = value >> low_, low = value & low_mask_;
    for (std::size_t i = 0; i < rounds; i += 2) {
      high ^= rounds_[i](low) & high_mask_;
      low ^= rounds_[i + 1](high) & low_mask_;
    }
    return high << low_ | low;
  }
  std::uint64_t unpermuted(std::uint64_t value) const {
    std::uint64_t high = value >> low_, low = value & low_mask_;
    for (std::size_t i = rounds; i > 0; i -= 2) {
      low ^= rounds_[i - 1](high) & low_mask_;
      high ^= rounds_[i - 2](low) & high_mask_;
    }
    return high << low_ | low;
  }

  std::uint64_t size_;
  unsigned low_ = 0;  // bits of the lower part
  std::uint64_t low_mask_ = 0, high_mask_ = 0;
  std::array<Round, rounds> rounds_{};
};

// A key for Permutation and other draws, made of the seed and up to two numbers. Draws with
// different purposes are independent.
enum class Purpose : std::uint8_t { streams, rows, slots, sequence, buckets, left_out, batches };
std::uint64_t draw_key(std::uint64_t seed, Purpose purpose, std::uint64_t a, std::uint64_t b = 0);

// Number `index` of the sequence of random numbers of a key, uniform in 64 bits.
std::uint64_t draw(std::uint64_t key, std::uint64_t index);

}  // namespace millrace::training
