// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schemas/slices/slice.h"

namespace millrace::recording {

// A part of a stream that is missing: [begin, end) in positions, and `events` events. If both are
// empty, answers are missing, or the end of the stream is.
struct MissingPart {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t events = 0;  // 0 if their number is not known: at the end of a stream
  std::string why{};         // "not recorded: queue_full", "damaged: file 3", "deleted"
  bool operator==(const MissingPart&) const = default;
};

// Joins the slices of one stream to the events that a Chunker accepts: `open`, then any events,
// then `end` or `abort`. Pure: it reads no file.
//
//   join.add(number, slice, why);
//   while (auto item = join.next()) ...
//
// The number and the position of the first event of a slice show whether events are missing before
// the slice. They are replaced by a `gap`, or by a `reset` if no frame is missing, and by a `size`
// if another size is in force. A stream without its begin gets an `open` at position 0, and a
// stream without its end an `abort`. All of these have the cause `recorder`.
//
// Slices may come from a damaged or forged file: those that contradict the slices before them are
// left out. The events are legal for a Chunker, with one exception: whether the count of a `size`
// event is allowed depends on the rule (ChunkRule::allows_body). The caller checks that.
//
// Confined to one thread. Does not allocate, except for missing().
class EventJoin {
 public:
  enum class Added {
    joined,
    known,        // all of it was given before, or it comes after the end: next() gives nothing
    contradicts,  // left out; its events are missing
  };

  explicit EventJoin(std::size_t frame_bytes) : frame_bytes_(frame_bytes) {}

  // Adds the slice that is next in the files. `number`: of the slice in its stream. `why`: the
  // reason if events before the slice are missing and it does not state that they were dropped.
  // Requires: next() has returned nullopt. The views of the slice are used until it does so again.
  Added add(std::uint32_t number, const Slice& slice, const std::string& why);

  // There are no more slices. `end`: the position after the last event, as far as it is known.
  // `why`: the reason if the stream has no end. Requires the same as add().
  void finish(std::uint64_t end, const std::string& why);

  // Items of the slice: its events, then its records.
  std::optional<RecordedItem> next();

  // True once next() has returned the last item.
  bool over() const { return over_; }
  // The position after the events of all slices added.
  std::uint64_t position() const { return position_; }
  const std::vector<MissingPart>& missing() const { return missing_; }

 private:
  struct Place {
    std::size_t event = 0;  // index in Slice::events
    std::size_t byte = 0;   // index in Slice::frames
  };

  bool begins(const Slice& slice) const { return slice.first_event == 0 && next_event_ == 0; }
  std::optional<Place> place_in(const Slice& slice) const;
  bool legal(const Slice& slice, std::size_t from) const;
  void name_missing(std::uint32_t number, const Slice& slice, const std::string& why);
  void replace_missing(const Slice& slice);
  void take(const Slice& slice, Place from);
  void insert(Event::Kind kind, std::uint64_t count = 0);
  RecordedEvent next_event();
  RecordedEvent next_inserted();
  RecordedEvent placed(RecordedEvent event);

  std::size_t frame_bytes_;
  std::uint64_t next_number_ = 0;     // that the next slice has if none is missing
  std::uint64_t next_event_ = 0;      // number of the next event
  std::uint64_t position_ = 0;        // before it
  std::uint64_t size_ = 0;            // by the last `size` event; 0: the size of the rule
  Time at_{};                         // when inserted events were read
  std::uint64_t given_position_ = 0;  // before the event that next() returns next
  std::uint64_t given_frames_ = 0;
  bool begun_ = false;
  bool ended_ = false;     // `end` or `abort` was added
  bool finished_ = false;  // no more slices are taken
  bool over_ = false;

  Slice slice_{};           // added last
  Place place_{};           // where its next event is
  std::size_t record_ = 0;  // for Slice::record
  bool totals_due_ = false;
  // Before the events of the slice: `open`, `gap` or `reset`, `size`; at the end `abort`.
  std::array<Event, 4> inserted_{};
  std::size_t inserted_begin_ = 0;
  std::size_t inserted_end_ = 0;

  std::vector<MissingPart> missing_;
};

}  // namespace millrace::recording
