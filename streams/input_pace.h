// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

#include "base/time.h"

namespace millrace {

// Limits the pace of a stream whose input costs much more than its bytes: packets of a few bytes
// can be decoded to 120 ms of audio. Such a stream is read at most `most` times as fast as real
// time, after `at_once` of audio at any pace. Has no clock. Confined to one thread.
class InputPace {
 public:
  static constexpr int most = 30;
  static constexpr Duration at_once = std::chrono::seconds(60);

  // False: the input of the stream is not limited.
  explicit InputPace(bool limits) : limits_(limits) {}

  // The stream has received this much audio. Requires: limits().
  void add(Duration audio, Time now) {
    pass(now);
    ahead_ += audio;
    exceeded_ |= ahead_ >= at_once;
  }
  // Time has passed.
  void pass(Time now) {
    if (now <= passed_) return;
    const Duration passed = std::min<Duration>(now - passed_, at_once);
    ahead_ = std::max(Duration{}, ahead_ - most * passed);
    passed_ = now;
    exceeded_ &= ahead_ > at_once / 2;
  }

  // True if nothing should be received for now. That lasts up to a second, so that not every packet
  // causes a pause.
  bool exceeded() const { return exceeded_; }
  bool limits() const { return limits_; }
  // The audio that may be received now. Requires: limits().
  Duration left() const { return exceeded_ ? Duration{} : at_once - ahead_; }

 private:
  Duration ahead_{};  // audio that real time at this pace has not reached
  Time passed_{};
  const bool limits_;  // no std::optional of this class: a Stream has no room for one
  bool exceeded_ = false;
};

}  // namespace millrace
