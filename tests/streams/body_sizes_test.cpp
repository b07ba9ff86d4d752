// SPDX-License-Identifier: Apache-2.0
// Which sizes the bodies of a stream have, by rule.
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "tests/streams/live_stream.h"

using namespace millrace;
using namespace std::chrono_literals;
using test::at;
using test::LiveStream;

namespace {

using By = SizeRule::By;

StreamSettings settings(By by, std::uint32_t first = 0,
                        std::optional<std::uint32_t> requested = {}) {
  return {.id = StreamId{5},
          .name = "mic",
          .type = {.rate = 1000},
          .format = {.rate = 1000},
          .chunk = {.spec = {.size = 20, .first = first},
                    .sizes = {.by = by,
                              .sizes = SizeList(std::vector<std::uint32_t>{10, 20, 40}),
                              .seed = 7}},
          .requested_size = requested,
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

TEST_CASE("with the rule `fixed` all bodies have the size of the rule") {
  LiveStream live(settings(By::fixed));
  CHECK(sizes_of(live, 60) == Sizes{20, 20, 20});
  CHECK(changes(live) == std::pair<std::uint64_t, std::uint64_t>{0, 0});
}

TEST_CASE("a stream keeps the size that its client requests, under every rule") {
  for (const By by : {By::fixed, By::adaptive, By::random}) {
    LiveStream live(settings(by, 0, 40));
    CHECK(live.stream.body_size() == 40);
    live.now += 1h;
    CHECK(sizes_of(live, 120) == Sizes{40, 40, 40});
    CHECK(live.chosen_size == 0);
    CHECK(changes(live) == std::pair<std::uint64_t, std::uint64_t>{0, 0});
  }
}

TEST_CASE("the first body of a run is longer by the same difference for every size") {
  LiveStream live(settings(By::fixed, 23, 40));
  CHECK(sizes_of(live, 83) == Sizes{43, 40});
  live.stream.flush(std::nullopt, live.now);  // the run continues
  CHECK(sizes_of(live, 40).back() == 40);
  live.stream.reset(live.now);
  CHECK(sizes_of(live, 43).back() == 43);
}

TEST_CASE("the first body may be shorter than the others") {
  LiveStream live(settings(By::fixed, 15, 10));
  CHECK(sizes_of(live, 25) == Sizes{5, 10, 10});
}

TEST_CASE("random sizes are those of the generator, by row with frames and name") {
  LiveStream live(settings(By::random));
  const SizeRule rule = live.stream.settings().chunk.sizes;
  const Sizes drawn = sizes_of(live, 500);
  REQUIRE(drawn.size() > 10);
  for (std::size_t i = 0; i < drawn.size(); ++i) CHECK(drawn[i] == drawn_size(rule, "mic", i));
  const auto [up, down] = changes(live);
  CHECK(up > 0);
  CHECK(down > 0);
  CHECK(up + down < drawn.size());
}

TEST_CASE("marker rows draw no size") {
  LiveStream live(settings(By::random));
  live.stream.flush(std::nullopt, live.now);
  live.stream.flush(std::nullopt, live.now);
  live.take_and_answer(2);
  const Sizes drawn = sizes_of(live, 100);
  CHECK(drawn[2] == drawn_size(live.stream.settings().chunk.sizes, "mic", 0));
}

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
