// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/event.h"
#include "chunker/row.h"
#include "chunker/spec.h"

namespace millrace {

// Cuts one stream: events in, rows out. A pure state machine without thread, clock or frames: it
// counts positions, whoever holds the frames lays them into the row. How frames are split into
// events changes no row.
//
// An event may yield many rows; they are taken one at a time, so that who takes them bounds how
// many wait:
//
//   chunker.add(event);
//   while (auto row = chunker.next()) ...
//
// Confined to one thread.
class Chunker {
 public:
  // Requires: check(spec) has nothing to say.
  explicit Chunker(const Spec& spec);

  // Requires: next() gave nothing since the event before, and the stream has not ended.
  // A size event requires step = 0 and count >= 1, a gap count >= 1.
  void add(const Event& event);

  // The next row of the event added last; nothing when the event is used up.
  std::optional<Row> next();

  // The position of the first frame that a later row may still show; what lies before it is
  // needed only by rows already given.
  std::uint64_t keep_from() const;

  // The position behind the last frame received or lost.
  std::uint64_t position() const;

  // The END row has been given.
  bool ended() const;
};

}  // namespace millrace
