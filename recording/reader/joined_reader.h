// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "chunker/chunker.h"
#include "recording/reader/stream_parts.h"
#include "recording/reader/stream_reader.h"

namespace millrace::recording {

// Reads the parts of a stream as one stream, with the rows that the services gave.
//
// A part that was opened anew with the row K replaces all rows from K on of the parts before it. So
// a part counts up to the event that completes the row K - 1, or up to B if that is later, and with
// the answers and messages up to this row. Then the next part follows, with its open. Its positions
// and numbers continue, with one exception: a row K - 1 with frames after its body has frames that
// the next part has again, from counts_until() on. If the begin of the next part is damaged, or the
// rule of this part is invalid, a part counts up to the position at which the next one begins.
//
// The stream ends with its last part only: an `abort` of an earlier one is left out, and an `end`
// that completes the row K - 1 is a `flush`. The times of all events are by the clock of the first
// part; from part to part, the wall clock counts.
//
// One part is read as by a StreamReader. Confined to the thread of its Recordings, which must
// outlive it.
class JoinedReader {
 public:
  JoinedReader(Recordings& recordings, const StreamParts& parts);

  // The next item. Its position and frame are those in its part. nullopt and the views: as for a
  // StreamReader.
  std::optional<RecordedItem> next();
  // The part of the item that next() has returned last. Before that, the first part.
  const RecordedStream& part() const { return parts_[at_].reader.stream(); }
  // When the first part opened, by the clock of the events.
  std::int64_t opened_steady() const { return opened_steady_; }
  // The position from which the frames of the next part count, and not those of this one.
  std::uint64_t counts_until() const { return parts_[at_].position; }
  // The first row of the next part. An event that ends a segment may yield rows of this part from
  // there on, which do not count.
  std::uint64_t rows_until() const { return parts_[at_].row; }
  // False: the next part has this event of the part again. Leaves only the frames that the next
  // part does not have.
  bool counts_once(RecordedEvent& read) const;
  // True once next() has returned the last item.
  bool over() const { return at_ + 1 == parts_.size() && parts_[at_].reader.over(); }
  // Missing parts of the stream, so far.
  std::vector<MissingPart> missing() const;
  std::size_t missing_count() const;

 private:
  struct Part {
    StreamReader reader;
    std::optional<RecordedItem> first{};  // read, but not returned
    std::uint64_t position = max;         // position and row of the next part
    std::uint64_t row = max;
  };
  static constexpr std::uint64_t max = ~std::uint64_t{0};

  void set_limits();
  void begin_part();
  void place_begin();
  std::optional<RecordedItem> next_of_part();
  bool counts(RecordedItem& item);
  bool counts(RecordedEvent& read);
  void cut_frames(RecordedEvent& read);
  void feed(const Event& event);

  std::vector<Part> parts_;
  std::size_t at_ = 0;
  std::int64_t opened_steady_, opened_wall_;  // the first part opened then
  Duration later_{};                          // from the clock of the part to that of the first one
  std::uint64_t skipped_ = 0;  // frames that the damaged begin of the part gives too many
  // For the rows of the part. Without a chunker, it counts up to a position.
  std::optional<ChunkRule> rule_;
  std::optional<Chunker> chunker_;
  std::uint64_t next_row_ = 0;
  bool complete_ = false;  // no further event of the part counts
};

}  // namespace millrace::recording
