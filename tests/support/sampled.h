// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>

namespace millrace::test {

// Tests with thousands of random or damaged inputs take all of them, but only a part if they are
// compiled with a sanitizer, which makes them several times slower.

// The number of random inputs to take from `inputs`.
template <std::integral Number>
constexpr Number sampled(Number inputs) {
  return MILLRACE_SANITIZED ? inputs / 4 : inputs;
}

// The distance between the bytes that are damaged, one after the other.
constexpr std::size_t byte_step = MILLRACE_SANITIZED ? 5 : 1;

}  // namespace millrace::test
