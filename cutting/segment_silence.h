// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "input/endpoint_rule.h"

namespace millrace {

// Decides where silence ends a segment: when `silence` follows speech, or when `before_speech` is
// over without speech. Pure. Confined to one thread.
class SegmentSilence {
 public:
  // `rule` outlives it.
  explicit SegmentSilence(const EndpointRule& rule) : rule_(rule) {}

  // A piece of audio has ended in the segment, which contains `frames` frames of it. Returns the
  // reason if the segment ends here; begin() is then due.
  std::optional<EndpointReason> add(bool speech, std::uint64_t frames) {
    if (speech) {
      has_speech_ = true;
      silent_ = 0;
      return std::nullopt;
    }
    silent_ += frames;
    if (has_speech_) return reached(rule_.silence, EndpointReason::silence);
    return rule_.before_speech ? reached(*rule_.before_speech, EndpointReason::no_speech)
                               : std::nullopt;
  }
  bool has_speech() const { return has_speech_; }
  // The next segment begins.
  void begin() {
    has_speech_ = false;
    silent_ = 0;
  }

 private:
  std::optional<EndpointReason> reached(std::uint64_t frames, EndpointReason reason) const {
    return silent_ >= frames ? std::optional(reason) : std::nullopt;
  }

  const EndpointRule& rule_;
  bool has_speech_ = false;
  std::uint64_t silent_ = 0;  // frames since the speech, or since the start of the segment
};

}  // namespace millrace
