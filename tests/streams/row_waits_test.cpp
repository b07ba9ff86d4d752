// SPDX-License-Identifier: Apache-2.0
// How long rows wait for a worker, and what adaptive sizes make of it.
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "tests/streams/live_stream.h"

using namespace millrace;
using namespace std::chrono_literals;
using test::at;
using test::LiveStream;

namespace {

using By = SizeRule::By;

StreamSettings settings(By by) {
  return {.id = StreamId{5},
          .name = "mic",
          .type = {.rate = 1000},
          .format = {.rate = 1000},
          .chunk = {.spec = {.size = 20},
                    .sizes = {.by = by, .sizes = SizeList(std::vector<std::uint32_t>{10, 20, 40})}},
          .frames_limit = 100'000,
          .opened = at(0)};
}

std::vector<std::uint64_t> sizes(const LiveStream& live) {
  std::vector<std::uint64_t> all;
  for (const ReadyRow& row : live.lane.rows) all.push_back(row.row.size);
  return all;
}
// The sizes of the rows of `frames` frames, sent one by one.
std::vector<std::uint64_t> sizes_of(LiveStream& live, std::uint32_t frames) {
  for (; frames > 0; --frames) {
    live.send(1);
    if (const auto rows = live.lane.rows.size() - live.answered) live.take_and_answer(rows);
  }
  return sizes(live);
}

std::pair<std::uint64_t, std::uint64_t> changes(const LiveStream& live) {
  return {live.stats.size_changes[SizeChange::up].value(),
          live.stats.size_changes[SizeChange::down].value()};
}

using Sizes = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE(
    "the first adaptive stream begins with the smallest size, later ones with the last chosen") {
  LiveStream first(settings(By::adaptive));
  CHECK(sizes_of(first, 10) == Sizes{10});
  CHECK(first.chosen_size == 10);
  std::uint32_t chosen = 40;
  LiveStream other(settings(By::adaptive));
  Stream later(
      settings(By::adaptive),
      {.host = other.lane, .blocks = other.pool, .stats = other.stats, .chosen_size = chosen},
      other.client);
  CHECK(later.body_size() == 40);
  CHECK(changes(other) == std::pair<std::uint64_t, std::uint64_t>{0, 0});
}

TEST_CASE("rows that wait for a batch make bodies larger") {
  LiveStream live(settings(By::adaptive));
  live.send(10);
  live.now += 100ms;  // the row is in no batch
  live.send(30);
  live.now += 100ms;
  live.send(40);
  CHECK(sizes(live) == Sizes{10, 10, 20, 40});  // each from a multiple of its size
  CHECK(live.chosen_size == 40);
  CHECK(live.stream.body_size() == 40);
  CHECK(changes(live) == std::pair<std::uint64_t, std::uint64_t>{2, 0});
}

TEST_CASE("rows that waited for a worker make bodies larger") {
  LiveStream live(settings(By::adaptive));
  live.send(20);
  live.take(2);
  live.now += 100ms;
  for (const std::uint64_t seq : {0, 1})
    live.stream.done({.seq = seq,
                      .at = {.arrived = at(0),
                             .ready = at(0),
                             .closed = at(1),
                             .copied = at(1),
                             .taken = at(90),
                             .done = at(100),
                             .written = {}}},
                     live.now);
  live.send(20);
  CHECK(sizes(live) == Sizes{10, 10, 20});
}

TEST_CASE("a row that is long in work does not count as waiting") {
  LiveStream live(settings(By::adaptive));
  live.send(10);
  REQUIRE(live.lane.rows.front().notify_batched);
  live.take(1);
  live.now += 1h;
  live.send(40);
  CHECK(sizes(live) == Sizes{10, 10, 10, 10, 10});
}

TEST_CASE("rows of adaptive streams ask for a notice only if rows take long") {
  LiveStream live(settings(By::adaptive));
  const auto one_row = [&](int done) {
    live.send(10);
    const bool asked = live.lane.rows.back().notify_batched;
    const Time ready = live.now;
    live.take(1);
    live.now += std::chrono::milliseconds(done);
    live.stream.done({.seq = live.answered++,
                      .at = {.arrived = ready,
                             .ready = ready,
                             .closed = ready,
                             .copied = ready,
                             .taken = ready,
                             .done = live.now,
                             .written = {}}},
                     live.now);
    return asked;
  };
  CHECK(one_row(1));  // the first row: no worker has had one
  CHECK_FALSE(one_row(10));
  CHECK_FALSE(one_row(11));
  CHECK(one_row(1));
  CHECK_FALSE(one_row(1));
}
