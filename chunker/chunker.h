// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/event.h"
#include "chunker/row.h"
#include "chunker/spec.h"

namespace millrace {

// Positions stay exact in every number they travel in (JSON, Python, doubles).
inline constexpr std::uint64_t max_position = std::uint64_t{1} << 53;

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
// Confined to one thread. Allocates nothing, and each call takes constant time, however many
// frames an event has.
class Chunker {
 public:
  // Requires: spec.check() has no error.
  explicit Chunker(const Spec& spec);

  // Requires: next() gave nothing since the event before, and the stream has not ended.
  // A size event requires that check_size(count) has no error, a gap count >= 1, frames and gaps
  // position() + count <= max_position.
  void add(const Event& event);

  // The next row of the event added last; nothing when the event is used up. The last row of the
  // segment that a flush ended carries the flush's mark.
  std::optional<Row> next();

  // How many more frames make the next row ready; 0 while one is. A frames event of no more than
  // that yields at most one row.
  std::uint64_t frames_until_next() const;

  // The position of the first frame that a later row may still show; what lies before it is
  // needed only by rows already given.
  std::uint64_t keep_from() const;

  // The position behind the last frame received or lost.
  std::uint64_t position() const { return position_; }

  // The END row has been given.
  bool ended() const { return ended_; }

 private:
  struct Body {
    std::uint32_t size;
    std::uint32_t right;
  };

  bool first_of_run() const { return first_of_segment_ && segment_ == run_; }
  std::uint32_t full_size() const;
  std::optional<Body> next_body() const;
  std::optional<Body> tail_body() const;
  Row cut(Body body);
  Row emit(std::uint64_t begin, Body body);
  void close_segment(Row& last);
  void begin_segment(const Event& event);

  Spec spec_;
  std::uint32_t size_;  // of bodies from now on: spec_.size until a size event

  // Positions in the stream.
  std::uint64_t run_ = 0;       // begin of the run
  std::uint64_t segment_ = 0;   // begin of the segment
  std::uint64_t body_ = 0;      // begin of the next body; beyond received_ where step > size
  std::uint64_t covered_ = 0;   // behind the last body
  std::uint64_t received_ = 0;  // behind the last frame of the segment
  std::uint64_t position_ = 0;  // received_, and behind a gap from when it was added

  bool first_of_segment_ = true;  // the next body is
  bool ended_ = false;
  std::optional<Event> closing_;  // ends the segment; its last row is yet to be given

  // Of the next row.
  std::uint64_t seq_ = 0;
  std::uint8_t due_ = flag::start | flag::reset | flag::segment;
  ResetReason reason_ = ResetReason::start;  // of the last reset, due or not
  std::uint64_t gap_ = 0;
};

}  // namespace millrace
