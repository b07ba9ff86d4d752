// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"
#include "recording/format/stream_meta.h"

namespace millrace {

// When the streams of a replay begin.
struct ScheduleRule {
  double speed = 0;                                               // as Pace::speed
  std::size_t at_once = std::numeric_limits<std::size_t>::max();  // most streams at a time
  bool unique_names = false;  // streams of the same name follow each other
  // Most streams at a time that have begun and are not opened().
  std::size_t opening = std::numeric_limits<std::size_t>::max();
};

// Decides which recorded stream begins next, and when. The oldest comes first. At a speed, streams
// begin at the distances of their recording; time in which no stream would be open is skipped.
//
// A stream for which there is no room begins later. From then on, as many streams are active as
// were open; one more is tried when the time of the refusal is over, or, if more streams were open
// before, when a stream ends.
//
// Pure: the time is the argument `now`, which never steps back. Confined to one thread.
class ReplaySchedule {
 public:
  // The streams in the order of their numbers. They are named by their index.
  ReplaySchedule(std::span<const recording::StreamMeta> streams, const ScheduleRule& rule);

  // The stream that may begin now; nullopt: none before due() or over(). The caller begins it with
  // begin(), or waits until there is room.
  std::optional<std::size_t> next(Time now);
  void begin(std::size_t stream);
  // There is room for the stream.
  void opened(std::size_t stream);
  // The stream is over.
  void over(std::size_t stream);
  // The stream could not begin, because there is no room. It is the next one, but not before
  // `retry`.
  void postpone(std::size_t stream, Time retry);

  // When next() may return a stream if nothing else happens; Time::max(): never.
  Time due() const;
  // True if no stream is left that has not begun.
  bool all_begun() const { return waiting_.empty(); }
  bool all_over() const { return waiting_.empty() && active_ == 0; }
  std::size_t active() const { return active_; }

 private:
  Time due_of(std::size_t stream) const;
  bool may_begin() const { return active_ < rule_.at_once && opening_ < rule_.opening; }
  Time room_from() const;
  void leave(std::size_t stream);
  std::optional<std::size_t> first() const;

  struct Entry {
    std::string name;
    Duration offset{};  // from the begin of the first stream, in recorded time
    bool opened = false;
  };

  const ScheduleRule rule_;
  std::vector<Entry> streams_;
  std::set<std::size_t> waiting_;     // streams that have not begun
  std::multiset<std::string> names_;  // names of the open streams
  std::size_t active_ = 0;
  std::size_t opening_ = 0;  // active streams that are not opened
  std::size_t room_ = std::numeric_limits<std::size_t>::max();  // streams for which there is room
  std::optional<Time> origin_;                                  // when offset 0 is due
  std::size_t most_open_ = 0;  // most streams that were open at a time
  Time retry_ = Time::min();   // when one more than room_ is tried
};

}  // namespace millrace
