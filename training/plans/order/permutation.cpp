// SPDX-License-Identifier: Apache-2.0
#include "training/plans/order/permutation.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "chunker/mix.h"

namespace millrace::training {
namespace {

// With fewer bits, a network reaches only some of the permutations.
constexpr unsigned fewest_bits = 6;

constexpr std::uint64_t mask(unsigned bits) { return (std::uint64_t{1} << bits) - 1; }

}  // namespace

std::uint64_t draw(std::uint64_t key, std::uint64_t index) { return mix(key + index); }

std::uint64_t draw_key(std::uint64_t seed, Purpose purpose, std::uint64_t a, std::uint64_t b) {
  const auto first = static_cast<std::uint64_t>(purpose);
  return mix(mix(mix(mix(seed) ^ first) ^ a) ^ b);
}

Permutation::Permutation(std::uint64_t size, std::uint64_t key) : size_(size) {
  assert(size >= 1);
  const unsigned bits = std::max(fewest_bits, static_cast<unsigned>(std::bit_width(size - 1)));
  low_ = bits - bits / 2;
  low_mask_ = mask(low_);
  high_mask_ = mask(bits / 2);
  std::uint64_t drawn = 0;
  for (Round& round : rounds_) {
    round.factor = draw(key, drawn++) | 1;
    round.summand = draw(key, drawn++);
  }
}

}  // namespace millrace::training
