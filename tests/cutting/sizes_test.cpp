// SPDX-License-Identifier: Apache-2.0
// The sizes of a stream's bodies under each rule, and the first body of each run.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "cutting/cutter.h"

using namespace millrace;
using By = SizeRule::By;
using Per = SizeRule::Per;
using Sizes = std::vector<std::uint32_t>;

namespace {

const SizeList list(Sizes{10, 20, 40});
constexpr std::string_view name = "mic";

// Bodies of 20 frames if nothing else is chosen.
ChunkRule sized(By by, const Spec& spec = {.size = 20}) {
  return {.spec = spec, .sizes = {.by = by, .sizes = list, .seed = 7}};
}

// A stream whose rows wait for this time.
struct SizedStream {
  explicit SizedStream(const ChunkRule& of, std::optional<std::uint32_t> requested = {},
                       Duration rows_wait = {})
      : rule(of),
        waited(rows_wait),
        cutter(rule, {.stream = name,
                      .requested_size = requested,
                      .stats = &stats,
                      .chosen_size = &chosen}) {
    take();
  }
  void add(std::uint64_t frames) {
    while (frames > 0) {
      const std::uint64_t part = std::min(frames, cutter.frames_until_next());
      enter({.kind = Event::Kind::frames, .count = part});
      frames -= part;
    }
  }
  void enter(const Event& event) {
    cutter.add(event);
    take();
  }
  void flush() { enter({.kind = Event::Kind::flush}); }
  void reset() { enter({.kind = Event::Kind::reset}); }
  void gap() { enter({.kind = Event::Kind::gap, .count = 3}); }
  void take() {
    while (const auto row =
               cutter.next(waited, [&](const Event& event) { decisions.push_back(event); }))
      if (row->has_frames()) sizes.push_back(row->size);
  }
  // The bodies since the last call.
  Sizes bodies() { return std::exchange(sizes, {}); }
  std::uint64_t changes(SizeChange way) const { return stats.size_changes[way].value(); }

  const ChunkRule rule;
  const Duration waited;
  CutStats stats;
  std::uint32_t chosen = 0;
  Cutter cutter;
  Sizes sizes;
  std::vector<Event> decisions;
};

// Size 20, and a first body that differs by this number of frames.
ChunkRule with_first(int difference) {
  return sized(By::fixed, {.size = 20, .first = static_cast<std::uint32_t>(20 + difference)});
}

// Calls check(stream, size, first body) for each size and both signs of the difference.
template <class Check>
void for_each_first(Check check) {
  for (const int difference : {6, -6})
    for (const std::uint32_t size : {10u, 20u, 40u}) {
      CAPTURE(difference, size);
      SizedStream live(with_first(difference), size);
      check(live, size, static_cast<std::uint32_t>(static_cast<int>(size) + difference));
    }
}

}  // namespace

TEST_CASE("under the rule fixed all bodies have the size of the rule") {
  SizedStream live(sized(By::fixed));
  live.add(105);
  live.flush();
  CHECK(live.bodies() == Sizes{20, 20, 20, 20, 20, 5});
  CHECK(live.cutter.body_size() == 20);
  CHECK(live.decisions.empty());
}

TEST_CASE("a stream keeps the requested size under every rule, whatever the load") {
  for (const By by : {By::fixed, By::adaptive, By::random})
    for (const std::uint32_t size : {10u, 20u, 40u}) {
      CAPTURE(static_cast<int>(by), size);
      SizedStream live(sized(by), size, std::chrono::seconds(10));
      live.add(240);
      live.reset();
      live.add(40);
      CHECK(live.bodies() == Sizes(280 / size, size));
      CHECK(live.cutter.body_size() == size);
      CHECK(live.chosen == 0);  // no choice that other streams may continue
    }
}

TEST_CASE("the first body differs by the same number of frames for each size") {
  for_each_first([](SizedStream& live, std::uint32_t size, std::uint32_t first) {
    live.add(first + 3 * size);
    CHECK(live.bodies() == Sizes{first, size, size, size});
    CHECK(live.cutter.body_size() == size);
  });
}

TEST_CASE("a reset and a gap begin with a first body again, and a flush does not") {
  for_each_first([](SizedStream& live, std::uint32_t size, std::uint32_t first) {
    live.add(first + size + 1);
    live.reset();
    live.flush();  // without frames, the first body is still to come
    live.add(first);
    live.flush();
    live.add(size);
    live.gap();
    live.gap();  // ends no segment
    live.add(first + size);
    CHECK(live.bodies() == Sizes{first, size, 1, first, size, first, size});
  });
}

TEST_CASE("rows at the end of a segment keep the size in force, and each counts as a row") {
  const SizeRule rule{.by = By::random, .sizes = SizeList(Sizes{20, 50}), .seed = 7};
  SizedStream live({.spec = {.size = 20, .right = 100}, .sizes = rule});
  std::uint64_t rows = 0;
  for (int segment = 0; segment < 20; ++segment) {
    const std::uint32_t first = drawn_size(rule, name, rows),
                        then = drawn_size(rule, name, rows + 1);
    live.add(first + 100);  // the first row, and those at the end
    live.flush();
    Sizes expected{first};
    expected.resize(1 + 100 / then, then);
    CHECK(live.bodies() == expected);
    rows += expected.size();
  }
}

TEST_CASE("changes of the size are counted up and down") {
  for (const Per per : {Per::chunk, Per::stream}) {
    SizeRule rule{.by = By::random, .sizes = SizeList(5, 45, 5), .seed = 7, .per = per};
    Sizes drawn;
    std::uint64_t up = 0, down = 0;
    for (std::uint64_t row = 0; row <= 100; ++row) {
      drawn.push_back(drawn_size(rule, name, row));
      if (row == 0) continue;
      up += drawn[row] > drawn[row - 1] ? 1 : 0;
      down += drawn[row] < drawn[row - 1] ? 1 : 0;
    }
    SizedStream live({.spec = {.size = drawn[0]}, .sizes = rule});
    drawn.pop_back();  // of the body that begins after the last row
    for (const std::uint32_t size : drawn) live.add(size);
    CHECK(live.bodies() == drawn);
    CHECK(live.changes(SizeChange::up) == up);
    CHECK(live.changes(SizeChange::down) == down);
    CHECK((up > 0) == (per == Per::chunk));
  }
}

TEST_CASE("the difference of a first body is not a change of the size") {
  SizedStream live(with_first(6), 20);
  live.add(66);
  live.reset();
  live.add(66);
  CHECK(live.changes(SizeChange::up) == 0);
  CHECK(live.changes(SizeChange::down) == 0);
}

TEST_CASE("size events have the cause of their rule, and there is none without a change") {
  const Spec spec{.size = 20, .first = 26};
  const auto causes = [](const SizedStream& live) {
    std::vector<Cause> all;
    for (const Event& event : live.decisions) all.push_back(event.cause);
    return all;
  };
  CHECK(causes(SizedStream(sized(By::fixed, spec))) == std::vector{Cause::client});
  CHECK(causes(SizedStream(sized(By::adaptive, spec))) == std::vector{Cause::load});
  CHECK(causes(SizedStream(sized(By::random, spec))) == std::vector{Cause::drawn});
  for (const By by : {By::fixed, By::adaptive, By::random}) {
    const SizedStream live(sized(by, spec), 40);
    REQUIRE(causes(live) == std::vector{Cause::client});
    CHECK(live.decisions.front().count == 46);
    CHECK(SizedStream(sized(by), 20).decisions.empty());
  }
}

TEST_CASE("the sizes of a stream that is opened anew do not depend on its position") {
  for (const By by : {By::adaptive, By::random}) {
    std::vector<Sizes> bodies;
    for (const Event& open : {Event{}, Event{.count = 1'000'003, .rows = 5}}) {
      const ChunkRule rule = sized(by);
      std::uint32_t chosen = 40;
      Cutter cutter(rule, {.stream = name, .rate = 100, .chosen_size = &chosen});
      Sizes& sizes = bodies.emplace_back();
      cutter.add(open);
      for (int frames = 0; frames < 1000; ++frames) {
        while (const auto row = cutter.next()) sizes.push_back(row->size);
        cutter.add({.kind = Event::Kind::frames, .count = 1});
      }
    }
    CHECK(bodies[0].size() > 20);
    CHECK(bodies[0] == bodies[1]);
    CHECK((by == By::random || bodies[0].front() == 40));
  }
}
