// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdlib>

namespace millrace::test {

// Tests with thousands of random or damaged inputs take a part of them, and all if the environment
// has ALL_CPP_INPUTS. `scripts/test --all` sets it, but not with a sanitizer, which makes them
// several times slower.
inline bool all_inputs() { return std::getenv("ALL_CPP_INPUTS") != nullptr; }

// The number of random inputs to take from `inputs`.
template <std::integral Number>
Number sampled(Number inputs) {
  return all_inputs() ? inputs : inputs / 4;
}

// The distance between the bytes that are damaged, one after the other.
inline std::size_t byte_step() { return all_inputs() ? 1 : 5; }

}  // namespace millrace::test
