// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "batcher/batcher.h"

namespace millrace::test {

using namespace std::chrono_literals;

inline const Time t0{std::chrono::hours(1)};
constexpr std::uint8_t last_and_end = flag::last | flag::end;

inline BatchRule rule_of(std::uint32_t slots, std::uint32_t rows, Duration max_wait) {
  return {.slots = slots, .rows = rows, .max_wait = max_wait, .row_buckets = {}};
}

// A batcher with short notations: streams are letters, rows are "A0" (stream and seq), and an
// instant is a time after t0.
class BatcherUnderTest {
 public:
  explicit BatcherUnderTest(BatchRule rule) : batcher(std::move(rule)) {}

  void open(const std::string& names) {
    for (char name : names) slots_[index(name)] = batcher.open(StreamId(index(name))).value();
  }
  // A row with frames.
  void row(char name, Duration ready, std::uint8_t flags = 0, std::uint32_t size = 100) {
    add(name, ready, size, flags);
  }
  // A marker row.
  void mark(char name, Duration ready, std::uint8_t flags = flag::last) {
    add(name, ready, 0, flags);
  }
  // A row with frames over which a worker was lost.
  void suspect(char name, Duration ready) { add(name, ready, 100, 0, true); }
  Slot slot(char name) const { return slots_[index(name)]; }

  // The trigger of the batch that would close now; `idle`: the worker holds no batch.
  std::optional<Trigger> trigger(Duration at, bool idle = true) const {
    const auto choice = batcher.next(t0 + at, idle);
    return choice ? std::optional(choice->why) : std::nullopt;
  }

  // Closes a batch and returns its rows: "A0 B3 | C7", with marker rows after the bar.
  std::string close(Duration at) {
    batcher.close(batcher.next(t0 + at, true).value(), t0 + at, batch);
    std::string text;
    for (const BatchRow& row : batch.framed) text += name_of(row) + " ";
    text += "|";
    for (const BatchRow& row : batch.marks) text += " " + name_of(row);
    return text;
  }

  Batcher batcher;
  Batch batch;
  const StreamPosts* posts = nullptr;  // what the next rows carry

 private:
  static std::size_t index(char name) { return static_cast<std::size_t>(name - 'A'); }
  static std::string name_of(const BatchRow& row) {
    return char('A' + number(row.stream)) + std::to_string(row.ready.row.seq);
  }

  void add(char name, Duration ready, std::uint32_t size, std::uint8_t flags,
           bool suspect = false) {
    ReadyRow row;
    row.row.seq = seq_[index(name)]++;
    row.row.size = size;
    row.row.flags = flags;
    row.ready = t0 + ready;
    row.suspect = suspect;
    row.posts = posts;
    batcher.add(slot(name), row);
  }

  Slot slots_[26] = {};
  std::uint64_t seq_[26] = {};
};

}  // namespace millrace::test
