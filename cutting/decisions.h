// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "base/time.h"
#include "cutting/stats.h"
#include "input/endpoint_rule.h"
#include "input/voice_detector.h"

namespace millrace {

// The parameters of one stream that decide its sizes of bodies and its ends of segments, beside its
// rule. The pointers outlive the stream's cutter.
struct Decisions {
  std::string_view stream{};                      // the stream's name: decides what is drawn
  double rate = 16000;                            // frames per second
  std::optional<std::uint32_t> requested_size{};  // the size that the stream keeps
  Duration max_wait{};                            // longest wait of a row for others in its batch
  const EndpointRule* endpoint = nullptr;         // null: only events end segments
  std::unique_ptr<VoiceDetector> detector{};      // the one of these endpoints, if by voice
  CutStats* stats = nullptr;                      // null: nothing is counted
  // The size that an adaptive stream of the pipeline and thread chose last (0: none yet): the
  // stream begins with it, or else with the smallest size, and updates it. Null: no other stream.
  std::uint32_t* chosen_size = nullptr;
};

}  // namespace millrace
