// SPDX-License-Identifier: Apache-2.0
// Shedding: which frames are dropped, when, and the gaps in their place.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "tests/streams/live_stream.h"

using namespace millrace;
using namespace std::chrono_literals;
using test::at;
using test::LiveStream;
using test::Rows;
using test::Said;

namespace {

constexpr Duration patience = 160ms, latest = patience + patience / Intake::shed_grains;

StreamSettings settings(const Spec& spec, std::uint64_t limit) {
  return {.id = StreamId{5},
          .type = {},
          .format = format_of(SampleFormat::s16le, {}),
          .chunk = {.spec = spec},
          .frames_limit = limit,
          .shed_after = patience,
          .opened = at(0)};
}

// Has as many rows of ten frames as may be ready: further frames wait, for up to 160 ms.
struct FullStream : LiveStream {
  explicit FullStream(std::uint64_t limit = 1000) : LiveStream(settings(test::tens, limit)) {
    send(80);
  }
  void send_at(int ms, std::size_t frames) {
    now = at(ms);
    send(frames);
  }
  Rows rows_from(std::size_t first) const {
    const Rows all = rows();
    return {all.begin() + static_cast<std::ptrdiff_t>(std::min(first, all.size())), all.end()};
  }
};

std::vector<int> values(int first, int count) {
  std::vector<int> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), first);
  return all;
}

}  // namespace

TEST_CASE("frames that waited too long become a gap of the same length, and a new run begins") {
  FullStream live;
  live.send_at(100, 25);
  live.send_at(280, 10);
  live.take_and_answer(2);
  CHECK(live.rows_from(8) ==
        Rows{{8, 80, 0, 0, 0, flag::last, 0}, {9, 105, 0, 10, 0, test::resumes, 25}});
  CHECK(live.lane.rows[9].row.reason == ResetReason::overflow);
  CHECK(live.window(9) == values(106, 10));
  CHECK(live.stats.lost[Loss::overflow].value() == 25);
  CHECK(live.stream.position() == 115);
}

TEST_CASE("frames are not shed before they have waited for shed_after") {
  FullStream live;
  live.send_at(100, 10);
  live.now = at(260);
  live.take_and_answer(1);
  CHECK(live.rows_from(8) == Rows{{8, 80, 0, 10, 0, 0, 0}});
  CHECK(live.stats.lost[Loss::overflow].value() == 0);
}

TEST_CASE("frames that are shed one after another become one gap") {
  FullStream live;
  for (int ms = 100; ms <= 600; ms += 20) live.send_at(ms, 20);
  live.take_and_answer(2);
  // Frames read from 440 ms on have waited for less than 170 ms.
  CHECK(live.rows_from(8) ==
        Rows{{8, 80, 0, 0, 0, flag::last, 0}, {9, 420, 0, 10, 0, test::resumes, 340}});
  CHECK(live.window(9) == values(421, 10));
}

TEST_CASE("the rest of a message that is partly in rows can be shed") {
  LiveStream live(settings(test::tens, 1000));
  live.send(200);
  live.now = at(300);
  live.take_and_answer(2);
  CHECK(live.rows().back() == Rows::value_type{8, 80, 0, 0, 0, flag::last, 0});
  live.send(10);
  CHECK(live.rows().back() == Rows::value_type{9, 200, 0, 10, 0, test::resumes, 120});
  CHECK(live.window(9) == values(201, 10));
}

TEST_CASE("flushes, resets and the end are not shed, nor are rows") {
  FullStream live;
  live.send_at(100, 10);
  live.stream.flush(7, live.now);
  live.send(10);
  live.stream.end(live.now);
  live.now = at(300);
  live.take_and_answer(12);
  CHECK(live.rows_from(7) == Rows{{7, 70, 0, 10, 0, 0, 0},
                                  {8, 80, 0, 0, 0, flag::last, 0},
                                  {9, 90, 0, 0, 0, test::resumes | flag::last, 10},
                                  {10, 100, 0, 0, 0, test::resumes | test::ends, 10}});
  CHECK(live.said() == Said{"flushed 7", "closed 80 8"});
}

TEST_CASE("a client that sends in real time is not paused, however long its rows are in no batch") {
  FullStream live(300);
  for (int ms = 10; ms < 10'000; ms += 10) {
    live.send_at(ms, 10);
    if (live.stream.paused()) FAIL("paused after " << ms << " ms");
  }
  CHECK(live.stats.lost[Loss::overflow].value() == 9820);
  const std::int64_t held = 300 * 2, block = 4096;
  CHECK(live.stats.buffer.value() <= held + 4 * block);
}

TEST_CASE(
    "a client that sends more than the buffer holds is paused until waiting frames are shed") {
  FullStream live(300);
  live.send_at(100, 40);
  live.send_at(150, 100);
  CHECK(!live.stream.paused());
  live.send_at(150, 80);
  CHECK(live.stream.paused());
  live.now = at(100) + latest + 1ms;
  live.stream.tick(live.now);
  CHECK(live.stats.lost[Loss::overflow].value() == 40);
  CHECK(live.stream.paused());
  live.now = at(150) + latest;
  live.stream.tick(live.now);
  CHECK(live.stream.paused());
  live.now += 1ms;
  live.stream.tick(live.now);
  CHECK(!live.stream.paused());
  CHECK(live.said() == Said{"resume"});
  CHECK(live.stats.lost[Loss::overflow].value() == 220);
}

TEST_CASE("an abort releases all waiting frames") {
  FullStream live;
  live.send_at(100, 10);
  live.send_at(120, 100);
  live.stream.disconnected(ConnectionEnd::lost, live.now);
  live.take_and_answer(live.rows().size());
  CHECK(live.stream.finished());
  CHECK(live.stats.buffer.value() == 0);
}

namespace {

// A stream under a random load. The counter shows when frames were shed, oldest first.
struct SheddingPlay {
  explicit SheddingPlay(std::uint32_t seed)
      : random(seed), live(settings({.size = draw(1, 30), .left = draw(0, 20)}, 300)) {
    for (int i = 0; i < 400; ++i) {
      live.now += std::chrono::milliseconds(draw(0, 20));
      draw(0, 9) < 6 ? send() : serve();
      note();
    }
    live.stream.end(live.now);
    while (!live.stream.finished()) {
      serve();
      note();
    }
  }

  std::uint32_t draw(std::uint32_t from, std::uint32_t to) {
    return std::uniform_int_distribution<std::uint32_t>(from, to)(random);
  }
  void send() {
    if (live.stream.paused()) return live.stream.tick(live.now);
    const std::size_t frames = draw(1, 60);
    read.insert(read.end(), frames, live.now);
    live.send(frames);
  }
  void serve() {
    if (live.batched < live.lane.rows.size()) {
      live.take(1);
    } else if (windows.size() < live.batched) {
      windows.push_back(live.window(windows.size()));
      live.answer(1);
    }
  }
  void note() {
    while (shed.size() < live.stats.lost[Loss::overflow].value()) shed.push_back(live.now);
  }

  // Every frame is in a body or was shed, once. No frame is shed too early or cut too late.
  void check() const {
    std::uint64_t position = 0;
    std::size_t lost = 0;
    for (const ReadyRow& ready : live.lane.rows) {
      const Row& row = ready.row;
      for (std::uint64_t gap = row.gap; gap > 0; --gap, ++position, ++lost)
        REQUIRE((lost < shed.size() && shed[lost] - read[position] > patience));
      REQUIRE(row.begin == position);
      REQUIRE(row.is(flag::gap) == (row.gap > 0));
      position += row.size;
      if (row.size > 0 && !row.is(flag::last)) REQUIRE(ready.ready - read[position - 1] <= latest);
      REQUIRE(windows[row.seq] ==
              values(static_cast<int>(row.window_begin()) + 1, static_cast<int>(row.window())));
    }
    CHECK(position == read.size());
    CHECK(lost == shed.size());
    CHECK(live.stats.buffer.value() == 0);
  }

  std::mt19937 random;
  LiveStream live;
  std::vector<Time> read;                 // time at which each frame was read
  std::vector<Time> shed;                 // time at which each frame was shed
  std::vector<std::vector<int>> windows;  // windows of the rows that are done
};

}  // namespace

TEST_CASE("under any load, frames in no body were shed at the right time, and counted") {
  std::size_t shed = 0;
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    const SheddingPlay play(seed);
    play.check();
    shed += play.shed.size();
  }
  CHECK(shed > 10'000);
}
