// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <limits>

// For test binaries that list allocations.cpp.
namespace millrace::test {

// How often the program has asked for memory.
std::size_t allocations();

// While it lives, its thread does not get so many bytes or more at once.
class Scarcity {
 public:
  explicit Scarcity(std::size_t from) { set(from); }
  ~Scarcity() { set(std::numeric_limits<std::size_t>::max()); }
  Scarcity(const Scarcity&) = delete;
  Scarcity& operator=(const Scarcity&) = delete;

 private:
  static void set(std::size_t from);
};

}  // namespace millrace::test
