// SPDX-License-Identifier: Apache-2.0
#include "replay/rows/unbroken.h"

namespace millrace {

using Kind = Event::Kind;

bool Unbroken::take(recording::RecordedEvent& read, const recording::JoinedReader& reader) {
  Event& event = read.event;
  if (event.kind == Kind::open && !position_) {
    position_ = event.count;
    return true;
  }
  if (event.kind == Kind::open) {
    if (event.count <= *position_) return false;
    event = {.kind = Kind::gap, .cause = Cause::recorder, .count = event.count - *position_};
  }
  if (!reader.counts_once(read)) return false;
  if (event.kind == Kind::frames || event.kind == Kind::gap) *position_ += event.count;
  return true;
}

}  // namespace millrace
