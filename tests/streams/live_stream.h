// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "streams/stream.h"
#include "tests/support/bytes.h"
#include "tests/support/stream_ends.h"

namespace millrace::test {

// The numbers of the flags, as in rows of the protocol.
inline constexpr std::uint64_t begins = flag::start | flag::reset | flag::segment;
inline constexpr std::uint64_t ends = flag::last | flag::end;
inline constexpr std::uint64_t resumes = flag::reset | flag::segment | flag::gap;

inline constexpr Spec tens{.size = 10};

inline Time at(int ms) { return Time(std::chrono::milliseconds(ms)); }

using Rows = std::vector<std::array<std::uint64_t, 7>>;
using Said = std::vector<std::string>;

// A stream of s16 frames, 1 2 3 …, between a lane and a client that record what they receive. Its
// clock moves only if the test moves it.
struct LiveStream {
  explicit LiveStream(const Spec& spec, std::uint64_t limit = 1000)
      : LiveStream(StreamSettings{.id = StreamId{5},
                                  .type = {},
                                  .format = format_of(SampleFormat::s16le, {}),
                                  .chunk = {.spec = spec},
                                  .frames_limit = limit,
                                  .longest_post = 250,
                                  .opened = at(0)}) {}

  // `output`: the stream's client instead of `client`, if not null.
  explicit LiveStream(const StreamSettings& settings, std::size_t spare_blocks = 100,
                      std::unique_ptr<StreamTap> tap = {}, const ResumeSettings* resume = nullptr,
                      ClientOutput* output = nullptr)
      : pool(FrameBuffer::block_bytes(settings.type.bytes(), settings.chunk.width()), spare_blocks,
             stats.buffer),
        stream(settings,
               {.host = lane,
                .blocks = pool,
                .stats = stats,
                .chosen_size = chosen_size,
                .pace = pace},
               output ? *output : client, {}, std::move(tap), resume),
        answered(resume ? resume->start.seq : 0) {}

  void send(std::size_t frames) {
    std::vector<std::int16_t> values(frames);
    std::iota(values.begin(), values.end(), next);
    next = static_cast<std::int16_t>(next + static_cast<int>(frames));
    stream.frames(bytes_of(std::span<const std::int16_t>(values)), now);
  }

  void after(Duration time) {
    now += time;
    stream.tick(now);
  }

  // The lane has done the next `count` rows, batched or not.
  void answer(std::size_t count, Answer::Kind kind = Answer::Kind::none) {
    for (; count > 0; --count, ++answered)
      stream.done({.seq = answered, .answer = {kind, "said"}, .at = {}}, now);
    if (writes) write();
  }
  // The lane puts the next `count` rows into batches.
  void take(std::size_t count) {
    batched = std::min(std::max<std::size_t>(batched, answered) + count, lane.rows.size());
    stream.batched(batched - 1, now);
  }
  // Writes all results so far to the client.
  void write() { stream.written(std::exchange(client.unwritten, 0), now); }
  void take_and_answer(std::size_t count) {
    take(count);
    answer(count);
  }

  // [seq, begin, left, size, right, flags, gap] of the rows so far.
  Rows rows() const {
    Rows all;
    for (const ReadyRow& ready : lane.rows) {
      const Row& row = ready.row;
      all.push_back({row.seq, row.begin, row.left, row.size, row.right, row.flags, row.gap});
    }
    return all;
  }

  // The frames of a row's window.
  std::vector<int> window(std::size_t row) const {
    std::vector<int> frames;
    for (Bytes part : lane.rows[row].window)
      for (std::int16_t value : values_of<std::int16_t>(part)) frames.push_back(value);
    return frames;
  }

  // [number of the row, position, text] of the messages that the rows so far carry.
  using Carried = std::vector<std::tuple<std::uint64_t, std::uint64_t, std::string>>;
  Carried carried() const {
    Carried all;
    for (const ReadyRow& ready : lane.rows)
      if (ready.posts)
        for (const StreamPost& message : *ready.posts)
          all.emplace_back(ready.row.seq, message.position, message.text);
    return all;
  }

  Said said() { return std::exchange(client.said, {}); }

  StreamStats stats;
  RateRule pace{};  // may change while the stream has no other one
  std::uint32_t chosen_size = 0;
  BlockPool pool;
  CapturedRows lane;
  CapturedClient client;
  Stream stream;
  Time now = at(0);
  std::int16_t next = 1;
  std::size_t batched = 0;  // rows that the lane has put into batches
  std::uint64_t answered;   // rows that the lane has done, those before an open anew included
  bool writes = true;       // each answer at once
};

}  // namespace millrace::test
