// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <limits>

// Counts allocations, and makes them fail. For test binaries that list allocations.cpp.
namespace millrace::test {

// The number of allocations so far.
std::size_t allocations();
// The bytes that are allocated by `new` now.
std::size_t allocated_bytes();

// While it exists, allocations of `from` to `to` bytes fail on its thread.
class Scarcity {
 public:
  static constexpr std::size_t most = std::numeric_limits<std::size_t>::max();

  explicit Scarcity(std::size_t from, std::size_t to = most) { set(from, to); }
  ~Scarcity() { set(most, 0); }
  Scarcity(const Scarcity&) = delete;
  Scarcity& operator=(const Scarcity&) = delete;

 private:
  static void set(std::size_t from, std::size_t to);
};

// While it exists, one allocation of its thread fails: the nth from now on, counted from 1.
class FailingAllocation {
 public:
  explicit FailingAllocation(std::size_t nth) { set(nth); }
  ~FailingAllocation() { set(0); }
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;

 private:
  static void set(std::size_t nth);
};

}  // namespace millrace::test
