// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/event.h"
#include "base/time.h"
#include "chunker/chunker.h"
#include "chunker/row.h"
#include "chunker/spec.h"
#include "cutting/body_sizes.h"
#include "cutting/decisions.h"
#include "cutting/segment_endpoints.h"
#include "cutting/stats.h"

namespace millrace {

// Cuts one stream: events in, rows out. All of Millrace cuts streams with it, so the rows of a
// recorded stream and of a training plan are those of the live stream. The frames stay with the
// caller. There are three ways to decide the sizes of bodies and the ends of segments:
//
// - Live: they are decided here, and the time for which rows wait may count.
// - At once: they are decided here as for a stream whose rows never wait.
// - Recorded: they are among the events.
//
//   for (;;) {
//     while (auto row = cutter.next()) …
//     if (no event is left) break;
//     cutter.add(event);  // frames: at most frames_until_next()
//   }
//
// Rows do not depend on how frames are split into events, except where the load or a worker
// decides. Has no clock. Confined to one thread. Does not allocate after construction, except that
// the voice detector of a pipeline above 16 kHz allocates when a run begins.
class Cutter {
 public:
  // Recorded. `rule` outlives it.
  explicit Cutter(const ChunkRule& rule) : rule_(rule), chunker_(rule.chunker_spec()) {}
  // Live or at once. `rule` outlives it.
  Cutter(const ChunkRule& rule, Decisions decisions);

  // The check for recorded events: false if no stream of this rule can have the event, a `size`
  // event in a file that no service wrote.
  bool allows(const Event& event) const {
    return event.kind != Event::Kind::size || rule_.allows_body(event.count);
  }
  // Adds the next event. `frames` are the values of its frames, if needs_values(). Requires that
  // next() has returned nullopt for the event before, and that the stream has not ended. A size
  // requires that Spec::check_size() has no error, a gap count >= 1; frames and gaps require
  // position() + count <= max_position. An open is the first event, and may be left out if it is
  // not one anew; its count is at most max_position.
  void add(const Event& event, const std::array<Bytes, 2>& frames = {});

  // The next row of the events so far; nullopt: add the next event. An endpoint that is due, and
  // the size of a body that begins, enter here as events, and `decided` is called with each.
  // `waited` is how long the stream's rows wait. While it is nullopt, no size is chosen.
  template <class Decided>
  std::optional<Row> next(std::optional<Duration> waited, Decided decided) {
    for (;;) {
      if (auto row = cut()) return row;
      const auto event = decide(waited);
      if (!event) return std::nullopt;
      add(*event);
      decided(*event);
    }
  }
  // At once, or recorded.
  std::optional<Row> next() {
    return next(Duration{}, [](const Event&) {});
  }

  // The most frames that the next event may have, at least 1. The event then yields at most one
  // row. If decides() is false, an event may have any number.
  std::uint64_t frames_until_next() const;
  // False if sizes and endpoints come as events, or if the rule has neither.
  bool decides() const { return sizes_ || endpoints_; }
  // True if add() needs the values of frames.
  bool needs_values() const { return endpoints_ && endpoints_->needs_values(); }

  // A worker's answer ends the segment of the row with this number.
  void on_worker_endpoint(std::uint64_t seq);
  // True, once, if the frames added last had the first speech of their segment.
  bool speech_began() { return endpoints_ && endpoints_->speech_began(); }
  // True, once, if there was no memory for the voice detector. No endpoint by voice follows: each
  // caller that gives a detector must ask.
  bool lost_detector() { return endpoints_ && endpoints_->lost_detector(); }

  // The number of frames of the stream before this position: without those that gaps skipped, and
  // those before an open anew. For positions of the row that next() has returned last.
  std::uint64_t index(std::uint64_t position) const { return position - skipped_; }
  // The index of the first frame that a later row may show.
  std::uint64_t keep_from() const { return keep_from_; }
  // See Chunker::resume_position().
  std::uint64_t resume_position() const { return chunker_.resume_position(); }
  // See Chunker::is_closing().
  bool is_closing() const { return chunker_.is_closing(); }
  // The position after the last frame received or lost.
  std::uint64_t position() const { return chunker_.position(); }
  // True once next() has returned the END row.
  bool ended() const { return chunker_.ended(); }
  // The current size of bodies.
  std::uint32_t body_size() const { return sizes_ ? sizes_->size() : rule_.spec.size; }
  // The source of endpoints; null if it has none.
  const SegmentEndpoints* endpoints() const { return endpoints_ ? &*endpoints_ : nullptr; }

 private:
  std::optional<Row> cut();
  std::optional<Event> decide(std::optional<Duration> waited);
  void begin(Event::Kind after);
  void count(const Row& row);

  const ChunkRule& rule_;
  CutStats* stats_ = nullptr;
  Chunker chunker_;
  Event::Kind last_ = Event::Kind::open;  // the kind of the event added last
  std::uint64_t gap_ = 0;                 // frames that this event loses
  std::uint64_t skipped_ = 0;             // by the open and earlier gaps: position minus index
  std::uint64_t keep_from_ = 0;
  std::optional<BodySizes> sizes_;
  std::optional<SegmentEndpoints> endpoints_;
};

}  // namespace millrace
