// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/enum_names.h"
#include "base/time.h"

namespace millrace {

// Counters that a stage keeps and the exporter reads. Each has one writing thread, so that counting
// is a load and a store without a locked instruction. Any thread may read. Memory order is relaxed:
// no other data depends on a count.

class Counter {
 public:
  void add(std::uint64_t n = 1) {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  // Adds a time in nanoseconds. Requires: not negative.
  void add(Duration time) { add(static_cast<std::uint64_t>(time.count())); }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

class Gauge {
 public:
  void set(std::int64_t value) { value_.store(value, std::memory_order_relaxed); }
  void add(std::int64_t n) { set(value() + n); }
  std::int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> value_{0};
};

// Counts values by bucket: at most bounds[i], or above all bounds. Values and bounds are integers
// in the smallest unit (nanoseconds, bytes, rows), so that sums are exact; the exporter scales them
// to base units. The threads are those of a counter.
class Histogram {
 public:
  // `bounds` ascend, are at most 19, and must outlive this object.
  explicit Histogram(std::span<const std::int64_t> bounds) : bounds_(bounds) {}

  void observe(std::int64_t value) {
    const auto bucket =
        static_cast<std::size_t>(std::ranges::lower_bound(bounds_, value) - bounds_.begin());
    counts_[bucket].add();
    sum_.add(value);
  }
  void observe(Duration value) { observe(static_cast<std::int64_t>(value.count())); }

  std::span<const std::int64_t> bounds() const { return bounds_; }
  // The count of bucket i, not cumulative; i = bounds().size() is the bucket above all bounds.
  std::uint64_t count(std::size_t i) const { return counts_[i].value(); }
  std::int64_t sum() const { return sum_.value(); }

 private:
  std::span<const std::int64_t> bounds_;
  std::array<Counter, 20> counts_;
  Gauge sum_;
};

// A counter or gauge for each value of an enumeration: one metric with a label.
template <class Cell, class Enum>
class Labelled {
 public:
  Cell& operator[](Enum value) { return cells_[static_cast<std::size_t>(value)]; }
  const Cell& operator[](Enum value) const { return cells_[static_cast<std::size_t>(value)]; }

 private:
  std::array<Cell, count_of<Enum>()> cells_;
};

// Bucket bounds (docs/metrics.md).
namespace buckets {
inline constexpr std::int64_t us = 1000, ms = 1000 * us, s = 1000 * ms;
inline constexpr std::array<std::int64_t, 19> fast{
    10 * us, 25 * us, 50 * us,  100 * us, 250 * us, 500 * us,  1 * ms, 2500 * us, 5 * ms, 10 * ms,
    25 * ms, 50 * ms, 100 * ms, 250 * ms, 1 * s,    2500 * ms, 10 * s, 30 * s,    120 * s};
inline constexpr std::array<std::int64_t, 18> e2e{
    5 * ms,   10 * ms,  20 * ms,  30 * ms, 50 * ms, 75 * ms, 100 * ms, 150 * ms, 200 * ms,
    300 * ms, 500 * ms, 750 * ms, 1 * s,   2 * s,   5 * s,   10 * s,   30 * s,   120 * s};
inline constexpr std::array<std::int64_t, 15> io{100 * us, 250 * us, 500 * us, 1 * ms,    2500 * us,
                                                 5 * ms,   10 * ms,  25 * ms,  50 * ms,   100 * ms,
                                                 250 * ms, 500 * ms, 1 * s,    2500 * ms, 10 * s};
inline constexpr std::array<std::int64_t, 8> size{64,    256,   1024,   4096,
                                                  16384, 65536, 262144, 1048576};
inline constexpr std::array<std::int64_t, 12> batch{1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 512};
inline constexpr std::array<std::int64_t, 8> life{1 * s,   5 * s,   15 * s,   60 * s,
                                                  300 * s, 900 * s, 3600 * s, 14400 * s};
}  // namespace buckets

}  // namespace millrace
