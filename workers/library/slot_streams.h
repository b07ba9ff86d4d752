// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "base/message_room.h"
#include "chunker/row.h"
#include "workers/library/worker_batch.h"

namespace millrace {

// The streams that have a slot of a worker, with what a message to their clients needs. A stream is
// here from its first row, when that is taken, until its END row is done. Its entry stays if it
// moves to another worker, until its slot has another stream. Confined to one thread.
class SlotStreams {
 public:
  struct Entry {
    StreamId stream{};
    std::uint64_t newest = 0;  // number of the newest row that was taken
    std::uint32_t room = 0;    // bytes, 0 ... stream_room
    bool here = false;
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
      const auto coming = coming_.extract(opened.stream);
      entry = {.stream = opened.stream, .room = coming.mapped(), .here = true};
      slots_[opened.stream] = opened.slot;
    }
    for (const auto* rows : {&batch.framed(), &batch.marks()})
      for (const auto& row : *rows) entries_[row.slot].newest = row.seq;
  }
  void done(const WorkerBatch& batch) {
    for (const auto* rows : {&batch.framed(), &batch.marks()})
      for (const auto& row : *rows) {
        Entry& entry = entries_[row.slot];
        if ((row.flags & flag::end) == 0 || entry.stream != row.stream) continue;
        entry.here = false;
        slots_.erase(row.stream);
      }
  }
  // Ignored if the stream is not here and does not come: it has ended or moved.
  void give_room(StreamId stream, std::uint32_t bytes) {
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
  std::vector<Entry> entries_;  // by slot
  std::unordered_map<StreamId, std::uint32_t> slots_;
  std::unordered_map<StreamId, std::uint32_t>
      coming_;  // the room of streams in batches that are not taken
};

}  // namespace millrace
