// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/event.h"
#include "base/ring.h"
#include "base/time.h"
#include "chunker/ready_row.h"
#include "chunker/spec.h"
#include "cutting/cutter.h"
#include "recording/format/row_digest.h"
#include "recording/reader/joined_reader.h"
#include "replay/rows/answer_comparison.h"
#include "replay/rows/frame_runs.h"
#include "replay/rows/pace.h"
#include "replay/rows/unbroken.h"

namespace millrace {

// How the rows of a recorded stream are cut again.
struct CutSettings {
  FrameType frames;
  ChunkRule rule;
  // The rule is not the recorded one: the decisions of the recorded rule are left out, which are
  // `size` events, and `flush` and `reset` with the cause `endpoint`. If the rule has sizes, they
  // are chosen as for a stream whose rows never wait. A stream that was opened anew is cut as if it
  // had not been.
  bool other_rule = false;
  std::string name{};  // the name of the stream decides which sizes are drawn
};

// The rows of one recorded stream: its recorded events in, rows out. These are the rows of the live
// stream, with the same windows, bit for bit. The windows lie in the mapped files, or, if they are
// in more than two slices, in memory of this object.
//
// A stream that was lost and opened anew has the rows of each of its parts that no later part has
// again: those that the clients received.
//
// At most max_ready_rows rows are in no batch, as in a live stream. A stream that was aborted keeps
// its last rows back until a worker has had a row: the lanes drop aborted streams without one.
//
// Pure: the time is the argument `now`. Confined to one thread. Does not allocate per row, except
// for windows in more than two slices.
class ReplayedRows {
 public:
  // `items` and `comparison` must outlive it. The comparison gets the recorded answers; it may be
  // null.
  ReplayedRows(recording::JoinedReader& items, const CutSettings& settings, const Pace& pace,
               AnswerComparison* comparison);
  ReplayedRows(const ReplayedRows&) = delete;
  ReplayedRows& operator=(const ReplayedRows&) = delete;

  // The next row; nullopt: call again at due(), or after batched() or done(). Its
  // frames stay in place until the row is done.
  std::optional<ReadyRow> next(Time now);
  // When the event is due that next() waits for; Time::max() if it waits for none.
  Time due() const { return due_; }

  // The row with this number, and those before it, were put into batches.
  void batched(std::uint64_t seq);
  // The oldest row is done. Returns it as it was cut. nullopt: it has another number.
  std::optional<Row> done(std::uint64_t seq);

  // True once the last row was returned by next(), or the recording has an event that the rule does
  // not allow (then problem() is not empty, and the stream has ended with an abort).
  bool ended() const { return cutter_->ended(); }
  const std::string& problem() const { return problem_; }
  std::uint64_t rows() const { return rows_; }            // rows so far
  std::uint64_t frames() const { return frames_.end(); }  // frames so far
  std::uint64_t position() const { return cutter_->position(); }
  // True if a recorded digest was found and the rows have another one: those of the last part.
  bool differs_from_live() const { return differs_; }
  // Reads the items after the last event: the last answers, and the totals.
  void read_rest();

 private:
  struct Outstanding {
    Row row;
    std::vector<std::byte> copy;  // its window, if that is not in place
    std::unique_ptr<StreamPosts> posts = nullptr;
  };

  std::size_t waiting() const { return outstanding_.size() - batched_; }
  std::optional<recording::RecordedItem> next_item();
  bool read();
  bool leaves_out(const Event& event) const;
  void take(recording::RecordedEvent event);
  void take(const recording::RecordedAnswer& answer);
  void take(const recording::StreamTotals& totals);
  template <class Record>
  void take(const Record&) {}  // changes no row
  void begin_part();
  bool feed(Time now);
  ReadyRow give(const Row& row, Time now);
  void digest(const Row& row);
  void abort_because(std::string why);

  recording::JoinedReader& items_;
  const CutSettings settings_;
  const Pace pace_;
  AnswerComparison* const comparison_;
  std::optional<Cutter> cutter_;  // for the part
  FrameRuns frames_;
  std::uint64_t before_ = 0;  // frames before the part
  Unbroken unbroken_;         // for another rule

  std::optional<recording::RecordedEvent> event_;  // the next event of the chunker
  Time due_ = Time::min();
  Time last_due_ = Time::min();
  bool items_over_ = false;
  bool missing_ = false;  // events of the stream are missing
  std::size_t missing_parts_ = 0;
  StreamPosts messages_;  // for the next row
  Ring<Outstanding> outstanding_;
  std::vector<std::vector<std::byte>> spare_;  // memory of copies
  std::size_t batched_ = 0;                    // number of first outstanding rows in batches
  bool begun_ = false;                         // a worker has had a row
  bool full_ = false;                          // no row is cut until half of them are in batches
  recording::RowDigest digest_;                // without the rows in digested_
  std::vector<std::byte> digested_;            // bytes of the last rows, for the digest
  std::uint64_t rows_ = 0;
  bool differs_ = false;
  std::string problem_;
};

}  // namespace millrace
