// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/answer.h"
#include "base/ids.h"
#include "base/message_room.h"
#include "chunker/row.h"
#include "workers/library/worker_batch.h"

namespace millrace {

// The streams that have a slot of a worker, with what a message to their clients needs. A stream is
// here from its first row, when that is taken, until its END row is done, and no row is pending.
// Its entry stays if it moves to another worker, until its slot has another stream. Confined to one
// thread.
class SlotStreams {
 public:
  struct Entry {
    StreamId stream{};
    std::uint64_t newest = 0;  // number of the newest row that was taken
    std::uint32_t room = 0;    // bytes, 0 ... stream_room
    bool here = false;
    bool ended = false;                  // its END row is done, perhaps without its answer
    std::vector<std::uint64_t> pending;  // numbers of rows whose answers follow
  };

  explicit SlotStreams(std::uint32_t slots) : entries_(slots) {}

  // The worker receives a batch, takes it, and gives it back. Requires: its slots are below
  // `slots`.
  void received(const WorkerBatch& batch) {
    for (const auto& opened : batch.opened()) coming_[opened.stream] = opened.room;
  }
  void taken(const WorkerBatch& batch) {
    for (const auto& opened : batch.opened()) {
      Entry& entry = entries_[opened.slot];
      if (entry.here) slots_.erase(entry.stream);
      entry = {};
      entry.stream = opened.stream;
      entry.room = coming_.extract(opened.stream).mapped();
      entry.here = true;
      slots_[opened.stream] = opened.slot;
    }
    for (const auto* rows : {&batch.framed(), &batch.marks()})
      for (const auto& row : *rows) entries_[row.slot].newest = row.seq;
  }
  void done(const WorkerBatch& batch, std::span<const Answer> answers,
            std::span<const Answer> mark_answers) {
    done(batch.framed(), answers);
    done(batch.marks(), mark_answers);
  }
  // The answer to a pending row is sent. False: the row is not pending.
  bool answered(StreamId stream, std::uint64_t seq) {
    Entry* const entry = find(stream);
    if (!entry || std::erase(entry->pending, seq) == 0) return false;
    leave_if_ended(*entry);
    return true;
  }
  // Without bytes, the stream is not at this worker any more. Ignored if it is not here anyway.
  void give_room(StreamId stream, std::uint32_t bytes) {
    if (bytes == 0) return leave(stream);
    const auto add = [bytes](std::uint32_t& room) { room += std::min(bytes, stream_room - room); };
    if (const auto coming = coming_.find(stream); coming != coming_.end())
      add(coming->second);
    else if (Entry* const entry = find(stream))
      add(entry->room);
  }
  // Null if the stream is not here.
  Entry* find(StreamId stream) {
    const auto slot = slots_.find(stream);
    return slot == slots_.end() ? nullptr : &entries_[slot->second];
  }

 private:
  static constexpr std::size_t most_pending = 4096;

  void done(const std::vector<worker_protocol::RowEntry>& rows, std::span<const Answer> answers) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      Entry& entry = entries_[rows[i].slot];
      if (entry.stream != rows[i].stream) continue;
      if (!answers.empty() && answers[i].kind == Answer::Kind::pending)
        entry.pending.push_back(rows[i].seq);
      // Rows that failed in the service because no answer came in time are still here.
      if (entry.pending.size() > most_pending) entry.pending.erase(entry.pending.begin());
      entry.ended |= (rows[i].flags & flag::end) != 0;
      leave_if_ended(entry);
    }
  }
  void leave_if_ended(const Entry& entry) {
    if (entry.ended && entry.pending.empty()) leave(entry.stream);
  }
  void leave(StreamId stream) {
    Entry* const entry = find(stream);
    if (!entry) return;
    entry->here = false;
    slots_.erase(stream);
  }

  std::vector<Entry> entries_;  // by slot
  std::unordered_map<StreamId, std::uint32_t> slots_;
  std::unordered_map<StreamId, std::uint32_t>
      coming_;  // the room of streams in batches that are not taken
};

}  // namespace millrace
