// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/rates/rate.h"
#include "base/rates/shared_rate.h"
#include "base/time.h"

namespace millrace {

// Limits the pace of a stream's input. The unit of the rule is a second of audio: the stream is
// read at most `per_second` times as fast as real time, after `burst` seconds of audio at any pace.
// If it has a tenant with a rate, the input of all streams of the tenant counts together too, and
// none of them is read while more than its burst was taken.
//
// Has no clock. The rule and the rate outlive it. Confined to one thread.
class InputPace {
 public:
  // `rule` may have no limit. `tenant`: the rate of its tenant, in seconds of audio; or null.
  explicit InputPace(const RateRule& rule, SharedRate* tenant = nullptr)
      : rule_(rule), tenant_(tenant) {}

  // The stream has received this much audio.
  void add(Duration audio, Time now) {
    if (tenant_) tenant_->take(now, std::chrono::duration<double>(audio).count());
    pass(now);
    if (!limits()) return;
    ahead_ += audio;
    exceeded_ |= ahead_ >= at_once();
  }
  // Time has passed.
  void pass(Time now) {
    tenant_exceeded_ = tenant_ && tenant_->wait(now, 0) > Duration{};
    if (!limits() || now <= passed_) return;
    const double passed =
        std::min(static_cast<double>((now - passed_).count()) * rule_.per_second(),
                 static_cast<double>(ahead_.count()));
    ahead_ -= Duration(static_cast<std::int64_t>(passed));
    passed_ = now;
    exceeded_ &= ahead_ > at_once() / 2;
  }

  // True if nothing should be received for now. That lasts for the time of half a burst, so that
  // not every packet causes a pause.
  bool exceeded() const { return exceeded_ || tenant_exceeded_; }
  bool limits() const { return rule_.limits(); }
  bool counts() const { return limits() || (tenant_ && tenant_->limits()); }
  // The audio that may be received now. Requires: limits().
  Duration left() const { return exceeded() ? Duration{} : at_once() - ahead_; }

 private:
  Duration at_once() const { return Duration(static_cast<std::int64_t>(rule_.burst() * 1e9)); }

  const RateRule& rule_;
  SharedRate* const tenant_;
  Duration ahead_{};  // audio that real time at this pace has not reached
  Time passed_{};
  bool exceeded_ = false;
  bool tenant_exceeded_ = false;
};

// The rule of Opus, always: its packets of a few bytes can be decoded to 120 ms of audio, so that
// they cost much more than their bytes.
inline const RateRule opus_pace(30, 60);

}  // namespace millrace
