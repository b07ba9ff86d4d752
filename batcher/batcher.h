// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/ring.h"
#include "base/row_columns.h"
#include "base/time.h"
#include "batcher/age_list.h"
#include "batcher/batch.h"

namespace millrace {

// A batch takes no further row once its rows carry this many bytes of messages to the worker.
inline constexpr std::size_t most_batch_posts = std::size_t{16} << 20;

// How the rows of a lane become batches.
struct BatchRule {
  std::uint32_t slots = 64;  // most streams of the lane; most marker rows of a batch
  std::uint32_t rows = 16;   // most rows with frames of a batch
  Duration max_wait{0};      // longest wait of the oldest row for other rows; 0: no wait
  std::vector<std::uint32_t> row_buckets{};    // lengths that the tensor may have, ascending,
                                               // the last is `rows`; empty: any length
  std::vector<std::uint32_t> width_buckets{};  // widths that the tensor may have, ascending, the
                                               // last holds every row; empty: any width
  RowColumns columns{};                        // where a window lies in its row
  bool stateful = true;                        // at most one row with frames per stream in a batch

  bool operator==(const BatchRule&) const = default;
};

// The rows of one lane: which stream has which slot, which rows wait, and which of them make the
// next batch. Pure: the time is the argument `now`, which never steps back; there are no callbacks.
// Credits and slabs are the caller's: it calls next() and close() when it has both.
//
// Order: oldest first. A row's age starts when it is ready and the row before it in its stream is
// in a batch, so a backlog of one stream cannot delay another. Rows of a stream stay in order. A
// batch has at most one of them with frames (any number if the rule is not stateful), and marker
// rows only after it. A marker row is not in the tensor: it goes into the next batch, even if
// there are more rows with frames than fit.
//
// The width of a batch is the narrowest of the rule's that holds its widest row. The order does not
// depend on widths.
//
// A batch takes no further row once its rows carry most_batch_posts of messages.
//
// A suspect row is alone in its batch, a trial, which closes as soon as the worker is idle, that
// is, holds no batch. Trials take turns with batches of the other rows, so that neither waits long
// for the other: when it is the suspect's turn, no other batch closes until the worker is idle.
//
// A slot is in use from open() until release() or remove(). Rows that return from a lost worker are
// added to another lane's batcher like other rows; they keep the instant at which they were ready.
//
// Confined to one thread. Does not allocate per row once its vectors have grown. next() and
// deadline() are O(1); close() is O(rows taken).
class Batcher {
 public:
  // Requires: slots >= 1, rows >= 1.
  explicit Batcher(BatchRule rule);

  // Gives a stream the lowest free slot; nullopt if no slot is free.
  std::optional<Slot> open(StreamId stream);

  // Adds a ready row. Requires: its stream has the slot and no END row yet, and row.seq follows
  // that of the row before.
  void add(Slot slot, const ReadyRow& row);

  // A batch that can close now.
  struct Choice {
    Trigger why;
    bool trial;
    bool operator==(const Choice&) const = default;
  };
  // `idle`: the worker holds no batch. Nullopt while no row waits, while more rows may come before
  // the deadline, and while a suspect waits for the worker to be idle.
  std::optional<Choice> next(Time now, bool idle) const;

  // When next() will return a batch if nothing happens before; Time::max(): never.
  Time deadline(bool idle) const;

  // Moves the rows of the next batch into `batch`, whose vectors are reused. The caller sets the
  // id. Requires: next(now, idle) returned `choice`.
  void close(const Choice& choice, Time now, Batch& batch);

  // The END row is done: frees the slot. Requires: it was in a batch.
  void release(Slot slot);

  // Removes the rows of a stream that are in no batch, and returns them in order.
  std::vector<ReadyRow> take(Slot slot);
  // Removes a stream before its END row: returns its rows that are in no batch, in order, and frees
  // its slot.
  std::vector<ReadyRow> remove(Slot slot);

  // No further rows will come: waiting rows close at once, with the trigger `drain`.
  void drain() { draining_ = true; }

  const BatchRule& rule() const { return rule_; }
  std::uint32_t streams() const { return streams_; }  // streams that have a slot
  std::uint32_t free_slots() const { return rule_.slots - streams_; }
  std::size_t waiting() const { return waiting_; }  // rows in no batch
  std::size_t waiting(Slot slot) const;
  std::vector<StreamId> holders() const;  // streams that have a slot, in the order of their slots

 private:
  // A slot: its stream, and the rows of it that wait.
  struct SlotRows {
    bool taken = false;
    bool ended = false;  // the END row has been in a batch
    StreamId stream{};
    Time before{};              // when the row before the first waiting row was put into a batch
    std::uint32_t leading = 0;  // rows at the front that have frames and are no suspects
    Ring<ReadyRow> rows;
  };

  bool full() const;
  std::optional<Trigger> trigger_of_others(Time now) const;
  Time deadline_of_others() const;
  bool is_turn_of_suspects() const { return suspects_.size() > 0 && !after_suspect_; }
  AgeList& list_of(const ReadyRow& row) {
    if (row.suspect) return suspects_;
    return row.row.has_frames() ? framed_ : marks_;
  }
  void enlist(std::uint32_t slot);
  void take_suspect(Time now, Batch& batch);
  void take_oldest(AgeList& list, std::size_t count, Time now, std::vector<BatchRow>& into);
  ReadyRow take_front(SlotRows& held, Time now);
  bool takes_more() const { return posts_ < most_batch_posts; }
  void free(SlotRows& held);
  void set_shape(Batch& batch) const;

  BatchRule rule_;
  std::vector<SlotRows> slots_;  // by slot
  // Streams that have rows, by the kind of their first row.
  AgeList framed_, marks_, suspects_;
  bool after_suspect_ = true;      // a batch without suspects is next, as at the start
  std::uint32_t lowest_free_ = 0;  // no slot below it is free
  std::uint32_t streams_ = 0;
  std::uint32_t open_ = 0;   // streams whose END row has not been in a batch
  std::size_t leading_ = 0;  // sum over the slots
  std::size_t waiting_ = 0;
  std::size_t posts_ = 0;  // bytes of messages in the batch that closes
  bool draining_ = false;
};

}  // namespace millrace
