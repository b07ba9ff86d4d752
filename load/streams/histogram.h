// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "base/time.h"

namespace millrace::load {

// A histogram of times with a resolution of 1/64 of the value: log-linear, as HdrHistogram (Gil
// Tene). Has a fixed size of 20 KiB. Negative times count as 0. Confined to one thread.
class Histogram {
 public:
  void add(Duration time) {
    const auto value = time.count() > 0 ? static_cast<std::uint64_t>(time.count()) : 0;
    ++counts_[bucket_of(value)];
    ++count_;
    if (value > greatest_) greatest_ = value;
  }

  void add(const Histogram& other) {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    count_ += other.count_;
    if (other.greatest_ > greatest_) greatest_ = other.greatest_;
  }

  std::uint64_t count() const { return count_; }
  Duration greatest() const { return Duration(static_cast<Duration::rep>(greatest_)); }

  // The quantile `part`: 0.5 is the median. 0 if empty.
  Duration quantile(double part) const {
    const auto wanted = static_cast<std::uint64_t>(std::ceil(part * static_cast<double>(count_)));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (seen > 0 && seen >= wanted)
        return std::min(Duration(static_cast<Duration::rep>(middle_of(i))), greatest());
    }
    return greatest();
  }

 private:
  static constexpr unsigned bits = 6;  // significant bits of a value
  static constexpr std::uint64_t steps = 1u << bits;
  static constexpr std::size_t octaves = 38;  // up to 2^43 ns, two hours

  static constexpr std::size_t bucket_of(std::uint64_t value) {
    if (value < steps) return value;
    const auto octave = static_cast<unsigned>(std::bit_width(value)) - bits;
    const std::size_t bucket = octave * steps + ((value >> (octave - 1)) & (steps - 1));
    return bucket < octaves * steps ? bucket : octaves * steps - 1;
  }
  static constexpr std::uint64_t middle_of(std::size_t bucket) {
    if (bucket < steps) return bucket;
    const std::size_t octave = bucket / steps;
    const std::uint64_t width = std::uint64_t{1} << (octave - 1);
    return (steps + bucket % steps) * width + width / 2;
  }

  std::array<std::uint64_t, octaves * steps> counts_{};
  std::uint64_t count_ = 0;
  std::uint64_t greatest_ = 0;
};

}  // namespace millrace::load
