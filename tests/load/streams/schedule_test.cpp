// SPDX-License-Identifier: Apache-2.0
#include "load/streams/schedule.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <vector>

using namespace millrace;
using namespace millrace::load;
using namespace std::chrono_literals;

namespace {

const Time begun{1h};

struct Started : Schedule {
  explicit Started(const LoadPlan& plan) : Schedule(plan) { Schedule::start(begun); }
};

}  // namespace

TEST_CASE("in uniform phase the packets of all streams are evenly spaced") {
  const Started schedule({.streams = 4, .packet = 100ms});
  CHECK(schedule.due(0, 0) == begun);
  CHECK(schedule.due(1, 0) == begun + 25ms);
  CHECK(schedule.due(3, 0) == begun + 75ms);
  CHECK(schedule.due(1, 10) == begun + 1025ms);
}

TEST_CASE("in step all streams send at the same moment") {
  const Started schedule({.streams = 4, .phase = Phase::step});
  for (std::uint32_t client = 0; client < 4; ++client)
    CHECK(schedule.due(client, 3) == begun + 300ms);
}

TEST_CASE("random phases differ, are in the first period, and depend only on the seed") {
  const LoadPlan plan{.streams = 100, .phase = Phase::random, .seed = 7};
  const Started schedule(plan), again(plan);
  LoadPlan other = plan;
  other.seed = 8;
  const Started different(other);
  std::set<Time> seen;
  for (std::uint32_t client = 0; client < plan.streams; ++client) {
    const Time due = schedule.due(client, 0);
    CHECK(due >= begun);
    CHECK(due < begun + plan.packet);
    CHECK(due == again.due(client, 0));
    CHECK(due != different.due(client, 0));
    CHECK(schedule.due(client, 5) == due + 5 * plan.packet);
    seen.insert(due);
  }
  CHECK(seen.size() == plan.streams);
}

TEST_CASE("jitter delays each packet independently, within its bound") {
  const Started schedule({.streams = 1, .jitter = 10ms});
  std::set<Duration> late;
  for (std::uint64_t packet = 0; packet < 100; ++packet) {
    const Duration by = schedule.due(0, packet) - (begun + packet * 100ms);
    CHECK(by >= 0ms);
    CHECK(by < 10ms);
    late.insert(by);
  }
  CHECK(late.size() == 100);
}

TEST_CASE("the first packet from an instant on is the one due then or next") {
  const Started schedule({.streams = 2});
  CHECK(schedule.first_from(0, begun - 1s) == 0);
  CHECK(schedule.first_from(0, begun) == 0);
  CHECK(schedule.first_from(0, begun + 1ns) == 1);
  CHECK(schedule.first_from(1, begun + 150ms) == 1);
  CHECK(schedule.first_from(1, begun + 151ms) == 2);
}

TEST_CASE("lifetimes have the requested mean, and the requested fraction disconnects") {
  const Started schedule({.life = 2s, .aborts = 0.25});
  double packets = 0;
  int disconnected = 0;
  constexpr int lives = 20'000;
  for (std::uint64_t first = 0; first < lives; ++first) {
    packets += static_cast<double>(schedule.packets_of_life(3, first));
    disconnected += schedule.disconnects(3, first);
  }
  CHECK(packets / lives == Approx(20).epsilon(0.05));
  CHECK(static_cast<double>(disconnected) / lives == Approx(0.25).epsilon(0.05));
}

TEST_CASE("packets due in the warm-up or after the end do not count") {
  const Started schedule({.warm_up = 1s, .length = 10s, .window = 4s});
  CHECK_FALSE(schedule.counts(begun + 999ms));
  CHECK(schedule.counts(begun + 1s));
  CHECK(schedule.window_of(begun + 1s) == 0);
  CHECK(schedule.window_of(begun + 5s) == 1);
  CHECK(schedule.window_of(begun + 10'999ms) == 2);
  CHECK_FALSE(schedule.counts(begun + 11s));
  CHECK(schedule.windows() == 3);
  CHECK(schedule.last() > schedule.end());
}

TEST_CASE("connections are cut at the rate of the plan, the same ones with the same seed") {
  const LoadPlan plan{.streams = 50, .cuts = 0.5, .warm_up = 0s, .length = 100s};
  const Started schedule(plan), again(plan);
  int count = 0, resets = 0, parts = 0, whole = 0;
  for (std::uint32_t client = 0; client < plan.streams; ++client) {
    Time at = begun;
    for (std::uint64_t number = 0; const auto cut = schedule.cut(client, number, at); ++number) {
      CHECK(cut->at > at);
      CHECK(cut->at == again.cut(client, number, at)->at);
      at = cut->at;
      ++count;
      resets += cut->resets;
      parts += cut->part.has_value();
      whole += cut->part == 1.0;
    }
    CHECK(at < schedule.last());
  }
  CHECK(count == Approx(2500).epsilon(0.1));
  CHECK(resets == Approx(count / 2.0).epsilon(0.1));
  CHECK(parts == Approx(count / 2.0).epsilon(0.1));
  CHECK(whole == Approx(count / 6.0).epsilon(0.2));
}

TEST_CASE("all connections are cut once, at a time of the measured time") {
  const Started schedule({.cut_all = 5s, .warm_up = 2s});
  const auto cut = schedule.cut(7, 0, begun);
  REQUIRE(cut);
  CHECK(cut->at == begun + 7s);
  CHECK_FALSE(cut->part);
  CHECK_FALSE(schedule.cut(7, 1, cut->at));
  CHECK_FALSE(Started({}).cut(7, 0, begun));
}
