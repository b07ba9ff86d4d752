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

// The events of a stream as people write them: pairs of what happens and a count, up to the first
// `end` or `abort`. Confined to one thread.
class StreamEvents {
 public:
  // Requires: spec.check() has no error.
  explicit StreamEvents(const Spec& spec) : spec_(spec) {}

  // The stream's next event. `kind` is one of frames, size, flush, reset, gap, end, abort. An event
  // that a Chunker of the spec does not take is an error in a sentence, and is not added. Those
  // behind the end are left out.
  Result<void, std::string> add(std::string_view kind, std::uint64_t count);

  const std::vector<Event>& events() const { return events_; }
  // `end` or `abort` was added.
  bool ended() const { return ended_; }
  // Columns of its rows.
  std::uint32_t width() const;

 private:
  Result<void, std::string> check(const Event& event) const;

  Spec spec_;
  std::vector<Event> events_;
  std::uint64_t position_ = 0;  // of the stream behind its events
  bool ended_ = false;
};

}  // namespace millrace
