// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace millrace::checking {

// Random numbers of a check: the same ones in every run, and with every standard library.
class Draws {
 public:
  explicit Draws(std::uint64_t seed = 1) : engine_(seed) {}

  // From 0 to `below` - 1. Requires: below >= 1.
  std::uint64_t number(std::uint64_t below) { return engine_() % below; }
  std::uint64_t between(std::uint64_t least, std::uint64_t most) {
    return least + number(most - least + 1);
  }
  bool one_in(std::uint64_t n) { return number(n) == 0; }

  template <class T>
  void shuffle(std::vector<T>& values) {
    for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[number(i)]);
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace millrace::checking
