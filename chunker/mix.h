// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace {

// A bijection whose values look random, also for numbers that follow each other: the step of
// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators). Sizes of
// chunks and orders of training streams are drawn with it, so it never changes.
constexpr std::uint64_t mix(std::uint64_t number) {
  number += 0x9e3779b97f4a7c15;
  number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9;
  number = (number ^ number >> 27) * 0x94d049bb133111eb;
  return number ^ number >> 31;
}

}  // namespace millrace
