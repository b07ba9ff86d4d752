// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "chunker/row_layout.h"
#include "load/row_check.h"

namespace millrace::load {

using namespace std::chrono_literals;
using worker_protocol::RowEntry;

inline constexpr std::uint32_t packet = 1600;
inline const Time start{1h};
inline const StreamId stream{77};

// A check of the rows of one stream.
struct CheckedRows {
  explicit CheckedRows(Phase phase = Phase::uniform,
                       const ChunkRule& cut = {.spec = {.size = packet}})
      : schedule({.streams = 4, .phase = phase, .warm_up = 0s}), rule(cut) {
    schedule.start(start);
    row_check.open(stream, stream_name("run", {1, 5}));
  }

  // The row of packet n of the stream, as it was sent.
  RowEntry row(std::uint64_t n) const {
    return {.stream = stream, .seq = n, .begin = n * packet, .size = packet};
  }
  std::vector<std::byte> sent(std::uint64_t n) const {
    std::vector<std::byte> bytes(2 * packet);
    content.write(1, 5 + n, bytes);
    return bytes;
  }
  void add(const RowEntry& entry) { row_check.check(entry, sent(entry.begin / packet), start); }
  // The columns of a batch; more than any row of the rule needs.
  std::uint32_t width() const { return rule.width() + 100; }
  // The values of a row in a tensor of this width.
  std::vector<std::byte> tensor_row(const Row& row) const {
    std::vector<std::byte> all;
    for (std::uint64_t n = 0; n * packet < row.end() + row.right; ++n) {
      const auto more = sent(n);
      all.insert(all.end(), more.begin(), more.end());
    }
    std::vector<std::byte> values(2 * width());
    const RowLayout layout = row_layout(row, rule, width());
    std::memcpy(values.data() + 2 * layout.lead, all.data() + 2 * row.window_begin(),
                2 * layout.window);
    return values;
  }
  static RowEntry entry_of(const Row& row) {
    return {.stream = stream,
            .seq = row.seq,
            .begin = row.begin,
            .gap = row.gap,
            .left = row.left,
            .size = row.size,
            .right = row.right,
            .flags = row.flags};
  }
  void add(const Row& row) {
    const RowEntry entry = entry_of(row);
    if (row.has_frames())
      row_check.check(entry, tensor_row(row), start);
    else
      row_check.check_mark(entry, start);
  }
  const WorkerOutcome& seen() { return row_check.outcome(); }

  Schedule schedule;
  Content content{schedule, FrameType{}};
  RunFacts run{schedule, content, "run", true};
  ChunkRule rule;
  RowCheck row_check{run, rule, FrameType{}};
};

}  // namespace millrace::load
