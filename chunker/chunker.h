// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/event.h"
#include "chunker/row.h"
#include "chunker/spec.h"

namespace millrace {

// The largest position: exact in JSON, Python and doubles.
inline constexpr std::uint64_t max_position = std::uint64_t{1} << 53;

// Cuts one stream: events in, rows out. A pure state machine without thread, clock or frames: it
// counts positions; the caller holds the frames. Rows do not depend on how frames are split into
// events, nor on messages, which the next row after them carries.
//
// A stream that is opened anew (Event::opened_anew()) begins a segment and a run at the position of
// its open. Its first row has RESET(failover) and no START.
//
// An event may yield many rows. They are returned one at a time, so that the caller bounds how many
// wait:
//
//   chunker.add(event);
//   while (auto row = chunker.next()) ...
//
// Confined to one thread. Does not allocate. Each call takes constant time for any number of frames
// in an event.
class Chunker {
 public:
  // Requires: spec.check() has no error.
  explicit Chunker(const Spec& spec);

  // Requires: next() has returned nullopt for the event before, and the stream has not ended. An
  // open is the first event, and may be left out if it is not one anew; its `count` is at most
  // max_position. A size event requires that check_size(count) has no error; a gap requires count
  // >= 1; frames and gaps require position() + count <= max_position.
  void add(const Event& event);

  // The next row of the event added last; nullopt if the event yields no more. The last row of a
  // segment that a flush ended carries the mark of the flush.
  std::optional<Row> next();

  // The number of frames until the next row is ready; 0 while a row is ready. A frames event of at
  // most this many frames yields at most one row.
  std::uint64_t frames_until_next() const;

  // The position of the first frame that a later row may show. Earlier frames are needed only by
  // rows that next() has returned.
  std::uint64_t keep_from() const;

  // The position from which a stream that is opened anew must receive frames, so that its rows
  // follow those that next() has returned. Call it right after next() has returned a row: later
  // events, such as a gap in a segment without frames, come after it.
  std::uint64_t resume_position() const;

  // The event added last ends a segment, and next() has further rows of it.
  bool is_closing() const { return closing_.kind != Event::Kind::open; }

  // The position after the last frame received or lost.
  std::uint64_t position() const { return position_; }
  // The number of frames of the segment so far.
  std::uint64_t segment_frames() const { return received_ - segment_; }
  // The next body is the first of its run.
  bool first_of_run() const { return first_of_segment_ && segment_ == run_; }
  // The size of the next bodies, except perhaps the first of a run.
  std::uint32_t size() const { return size_; }

  // True once next() has returned the END row.
  bool ended() const { return ended_; }

 private:
  struct Body {
    std::uint32_t size;
    std::uint32_t right;
  };

  std::uint32_t full_size() const;
  std::optional<Body> next_body() const;
  std::optional<Body> tail_body() const;
  Row cut(Body body);
  Row emit(std::uint64_t begin, Body body);
  void open_anew(const Event& event);
  void close_segment(Row& last);
  void begin_segment(const Event& event);

  Spec spec_;
  std::uint32_t size_;  // size of the next bodies: spec_.size until a size event

  // Positions in the stream.
  std::uint64_t run_ = 0;       // start of the run
  std::uint64_t segment_ = 0;   // start of the segment
  std::uint64_t body_ = 0;      // start of the next body; may be beyond received_ if step > size
  std::uint64_t covered_ = 0;   // end of the last body
  std::uint64_t received_ = 0;  // end of the frames of the segment
  std::uint64_t position_ = 0;  // received_, or the end of a gap once it is added

  Event closing_;  // ends the segment, whose last row is not returned yet; an open: no such event

  // For the next row.
  std::uint64_t seq_ = 0;
  std::uint8_t due_ = flag::start | flag::reset | flag::segment;
  ResetReason reason_ = ResetReason::start;  // the reason of the last reset, due or not
  bool first_of_segment_ = true;             // the next body is the first of its segment
  bool ended_ = false;
  std::uint64_t gap_ = 0;
};

}  // namespace millrace
