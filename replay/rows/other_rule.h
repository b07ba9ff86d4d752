// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/event.h"
#include "base/frame_type.h"
#include "chunker/spec.h"
#include "cutting/event_sources.h"
#include "cutting/stats.h"

namespace millrace {

// Cuts a recorded stream by another rule than it was recorded with: chooses the sizes of bodies if
// the rule has several, as for a stream whose rows never wait. Confined to one thread.
class OtherRule {
 public:
  // All arguments must outlive it.
  OtherRule(const std::string& stream, const FrameType& frames, const ChunkRule& rule)
      : sources_({.stream = stream,
                  .frames = frames,
                  .chunk = rule,
                  .requested_size = {},
                  .max_wait = {},
                  .endpoint = no_endpoint_},
                 stats_, chosen_size_) {}

  // The size that must enter the chunker before its next event; nullopt: none.
  std::optional<Event> size() { return sources_.size(Duration{}); }
  // The event has entered the chunker; the chunker has cut a row.
  void added(const Event& event) { sources_.added(event); }
  void cut(const Row& row) { sources_.cut(row); }

 private:
  const std::optional<EndpointRule> no_endpoint_;
  CutStats stats_;
  std::uint32_t chosen_size_ = 0;
  EventSources sources_;
};

}  // namespace millrace
