// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/ring.h"
#include "base/time.h"
#include "batcher/age_list.h"
#include "batcher/batch.h"

namespace millrace {

// How the rows of a lane become batches.
struct BatchRule {
  std::uint32_t slots = 64;  // streams that the lane has room for; marker rows in a batch at most
  std::uint32_t rows = 16;   // rows with frames in a batch at most
  Duration max_wait{0};      // how long the oldest row may wait for others; 0: it never waits
  std::vector<std::uint32_t> row_buckets{};  // lengths that the tensor may have, ascending, the
                                             // last is `rows`; empty: any length
  bool stateful = true;                      // at most one row with frames per stream in a batch

  bool operator==(const BatchRule&) const = default;
};

// The rows of one lane: which stream has which slot, which rows wait, and which of them make the
// next batch. Pure: the time comes in as `now`, which never steps back, and nothing is called back.
// It knows nothing of credits or slabs: who has both asks next() and closes.
//
// Order: oldest first, where a row's age counts from when it was ready and the row before it of
// its stream was taken, so a backlog of one stream cannot delay another. Of a stream, rows come
// in order, at most one with frames in a batch (any number where the rule is not stateful), marker
// rows only behind it. A marker row needs no place in the tensor: it goes with the next batch,
// whether or not there is room for the rows with frames.
//
// A suspect row is alone in its batch, a trial, which closes as soon as the worker is idle: it
// holds no batch. Trials take turns with batches of the other rows, so that neither waits long for
// the other: when it is the suspect's turn, nothing else closes until the worker is idle.
//
// A slot is taken from open() until release() or remove(). Rows that come back from a lost worker
// are added to another lane's batcher like any; they keep the instant at which they were ready.
//
// Confined to one thread. No allocation per row once its vectors have grown. next() and
// deadline() are O(1), close() is O(rows taken).
class Batcher {
 public:
  // Requires: slots >= 1, rows >= 1.
  explicit Batcher(BatchRule rule);

  // Gives a stream the lowest free slot; nothing when all are taken.
  std::optional<Slot> open(StreamId stream);

  // A row is ready. Requires: its stream has the slot and no END row yet, and row.seq follows the
  // one before.
  void add(Slot slot, const ReadyRow& row);

  // A batch that would close now.
  struct Choice {
    Trigger why;
    bool trial;
    bool operator==(const Choice&) const = default;
  };
  // Nothing while there is no row, it is worth waiting, or a suspect waits for the worker to be
  // idle.
  std::optional<Choice> next(Time now, bool idle) const;

  // When next() gives a batch by the clock if nothing happens before; Time::max() if it does not.
  Time deadline(bool idle) const;

  // Moves the rows of the next batch into `batch` (whose vectors are reused). The id is the
  // caller's. Requires: next(now, idle) gave `choice`.
  void close(const Choice& choice, Time now, Batch& batch);

  // The END row is done: frees the slot. Requires: it was in a batch.
  void release(Slot slot);

  // The stream leaves before its END row: takes back its rows that are in no batch, in order, and
  // frees its slot.
  std::vector<ReadyRow> remove(Slot slot);

  // Nothing more is to come: what waits closes at once, as `drain`.
  void drain() { draining_ = true; }

  const BatchRule& rule() const { return rule_; }
  std::uint32_t streams() const { return streams_; }             // that have a slot
  std::uint32_t room() const { return rule_.slots - streams_; }  // free slots
  std::size_t waiting() const { return waiting_; }               // rows in no batch
  std::size_t waiting(Slot slot) const;
  std::vector<StreamId> holders() const;  // streams that have a slot, in the order of their slots

 private:
  // Who has a slot, and its rows.
  struct Place {
    bool taken = false;
    bool ended = false;  // the END row has been in a batch
    StreamId stream{};
    Time before{};              // when the row before the first waiting one was taken
    std::uint32_t leading = 0;  // first waiting rows that have frames and are no suspects
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
  ReadyRow take_front(Place& place, Time now);
  void free(Place& place);
  std::uint32_t tensor_rows(std::size_t framed) const;

  BatchRule rule_;
  std::vector<Place> places_;  // by slot
  // Streams that have rows, by what the first one is.
  AgeList framed_, marks_, suspects_;
  bool after_suspect_ = true;      // the others are next; a new worker begins with them
  std::uint32_t lowest_free_ = 0;  // no slot below it is free
  std::uint32_t streams_ = 0;
  std::uint32_t open_ = 0;   // streams whose END row has not been in a batch
  std::size_t leading_ = 0;  // sum over the places
  std::size_t waiting_ = 0;
  bool draining_ = false;
};

}  // namespace millrace
