// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/event.h"
#include "base/result.h"
#include "chunker/spec.h"

namespace millrace {

// The events of a stream from text: pairs of a kind and a count, up to the first `end` or `abort`.
// Confined to one thread.
class StreamEvents {
 public:
  // Requires: spec.check() has no error.
  explicit StreamEvents(const Spec& spec) : rule_{.spec = spec} {}
  // If the rule has sizes, the events are those that a stream's chunker gets: `size` events have
  // one of the sizes, or the first body for it.
  explicit StreamEvents(const ChunkRule& rule) : rule_(rule) {}

  // Adds the next event. `kind` is one of frames, size, flush, reset, gap, message, set, end,
  // abort. If a Chunker of the spec does not accept the event, it is not added and the message says
  // why. Events after the end are ignored.
  Result<void, std::string> add(std::string_view kind, std::uint64_t count);
  // The stream is opened anew at this position, after this number of rows. The message says why it
  // is not.
  Result<void, std::string> open(std::uint64_t position, std::uint64_t rows);

  const std::vector<Event>& events() const { return events_; }
  // True once `end` or `abort` was added.
  bool ended() const { return ended_; }
  // The spec that cuts the events. If the rule has sizes, `size` events replace `first`.
  Spec spec() const;
  // The columns of its rows.
  std::uint32_t width() const;

 private:
  Result<void, std::string> check(const Event& event) const;
  bool has_size_event() const;

  ChunkRule rule_;
  std::vector<Event> events_;
  std::uint64_t position_ = 0;  // the position of the stream after its events
  bool ended_ = false;
};

}  // namespace millrace
