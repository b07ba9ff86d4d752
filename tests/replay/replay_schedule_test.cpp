// SPDX-License-Identifier: Apache-2.0
#include "replay/rows/replay_schedule.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <vector>

using namespace millrace;
using namespace std::chrono_literals;

namespace {

recording::StreamMeta opened_at(std::int64_t seconds, std::string name = "call") {
  recording::StreamMeta meta;
  meta.name = std::move(name);
  meta.opened_wall = meta.opened_steady = seconds * 1'000'000'000;
  return meta;
}

}  // namespace

TEST_CASE("at full speed the oldest stream begins first, as many at a time as allowed") {
  const recording::StreamMeta streams[] = {opened_at(1), opened_at(500), opened_at(900)};
  ReplaySchedule schedule(streams, {.at_once = 2});
  const Time now{5s};
  CHECK(schedule.next(now) == 0);
  schedule.begin(0);
  CHECK(schedule.next(now) == 1);
  schedule.begin(1);
  CHECK_FALSE(schedule.next(now));
  CHECK(schedule.due() == Time::max());
  schedule.over(0);
  CHECK(schedule.next(now) == 2);
  schedule.begin(2);
  schedule.over(1);
  CHECK_FALSE(schedule.all_over());
  schedule.over(2);
  CHECK(schedule.all_over());
}

TEST_CASE("at a speed streams begin at their recorded distances") {
  const recording::StreamMeta streams[] = {opened_at(100), opened_at(104), opened_at(110)};
  ReplaySchedule schedule(streams, {.speed = 2});
  schedule.begin(*schedule.next(Time{50s}));
  CHECK_FALSE(schedule.next(Time{51s}));
  CHECK(schedule.due() == Time{52s});
  CHECK(schedule.next(Time{52s}) == 1);
  schedule.begin(1);
  CHECK(schedule.due() == Time{55s});
}

TEST_CASE("time in which no stream is open is skipped") {
  const recording::StreamMeta streams[] = {opened_at(100), opened_at(5000), opened_at(5003)};
  ReplaySchedule schedule(streams, {.speed = 1});
  schedule.begin(*schedule.next(Time{50s}));
  schedule.over(0);
  CHECK(schedule.next(Time{60s}) == 1);
  schedule.begin(1);
  CHECK(schedule.due() == Time{63s});
}

TEST_CASE("a wall clock that was set back does not move streams") {
  recording::StreamMeta second = opened_at(110);
  second.opened_wall = 0;
  const recording::StreamMeta streams[] = {opened_at(100), second};
  ReplaySchedule schedule(streams, {.speed = 1});
  schedule.begin(*schedule.next(Time{1s}));
  CHECK(schedule.due() == Time{11s});
}

TEST_CASE("after a restart of the machine the wall clock gives the distance") {
  recording::StreamMeta second = opened_at(110);
  second.opened_steady = 0;
  const recording::StreamMeta streams[] = {opened_at(100), second};
  ReplaySchedule schedule(streams, {.speed = 1});
  schedule.begin(*schedule.next(Time{1s}));
  CHECK(schedule.due() == Time{11s});
}

TEST_CASE("streams of one name follow each other if names must be unique") {
  const recording::StreamMeta streams[] = {opened_at(1, "a"), opened_at(2, "a"), opened_at(3, "b")};
  ReplaySchedule schedule(streams, {.unique_names = true});
  schedule.begin(*schedule.next({}));
  CHECK(schedule.next({}) == 2);
  schedule.begin(2);
  CHECK_FALSE(schedule.next({}));
  schedule.over(0);
  CHECK(schedule.next({}) == 1);
}

TEST_CASE("a stream without room is the next one, after the time that the service gave") {
  const recording::StreamMeta streams[] = {opened_at(1), opened_at(2)};
  ReplaySchedule schedule(streams, {});
  schedule.begin(0);
  schedule.opened(0);
  schedule.begin(1);
  schedule.postpone(1, Time{9s});
  CHECK_FALSE(schedule.next(Time{8s}));
  CHECK(schedule.due() == Time{9s});
  CHECK(schedule.next(Time{9s}) == 1);
  SECTION("or as soon as another stream is over") {
    schedule.over(0);
    CHECK(schedule.next(Time{1s}) == 1);
  }
}

TEST_CASE("a few streams are being opened at a time, and the next one when one is opened") {
  const std::vector streams(5, opened_at(1));
  ReplaySchedule schedule(streams, {.opening = 2});
  for (int i = 0; i < 2; ++i) schedule.begin(*schedule.next({}));
  CHECK_FALSE(schedule.next({}));
  schedule.opened(0);
  CHECK(schedule.next({}) == 2);
}

TEST_CASE("after a refusal as many streams are active as there was room for") {
  // A service with room for 4 streams, which ends one per second.
  const std::vector streams(100, opened_at(1));
  ReplaySchedule schedule(streams, {.opening = 8});
  std::vector<std::size_t> open;
  std::size_t refusals = 0;
  for (Time now{}; !schedule.all_over(); now += 1s) {
    std::vector<std::size_t> begun;
    while (const auto stream = schedule.next(now)) {
      schedule.begin(*stream);
      begun.push_back(*stream);
    }
    for (const std::size_t stream : begun) {
      if (open.size() < 4) {
        schedule.opened(stream);
        open.push_back(stream);
      } else {
        schedule.postpone(stream, now + 10s);
        ++refusals;
      }
    }
    CHECK((schedule.all_begun() || open.size() == 4));
    REQUIRE_FALSE(open.empty());
    schedule.over(open.front());
    open.erase(open.begin());
  }
  CHECK(refusals < 20);
}

TEST_CASE("more streams begin when there is more room than before") {
  const std::vector streams(9, opened_at(1));
  ReplaySchedule schedule(streams, {.opening = 8});
  for (int i = 0; i < 2; ++i) schedule.begin(*schedule.next({}));
  schedule.opened(0);
  schedule.postpone(1, Time{9s});
  schedule.begin(*schedule.next(Time{9s}));
  CHECK_FALSE(schedule.next(Time{9s}));
  schedule.opened(1);
  CHECK(schedule.next(Time{9s}) == 2);
}

TEST_CASE("a place that was not free yet is taken when the next stream ends") {
  const std::vector streams(9, opened_at(1));
  ReplaySchedule schedule(streams, {.opening = 8});
  for (std::size_t i = 0; i < 4; ++i) schedule.begin(*schedule.next({}));
  for (std::size_t i = 0; i < 3; ++i) schedule.opened(i);
  schedule.postpone(3, Time{9s});
  schedule.over(0);
  schedule.begin(*schedule.next({}));
  schedule.postpone(3, Time{9s});
  CHECK_FALSE(schedule.next({}));
  schedule.over(1);
  for (std::size_t i = 3; i < 5; ++i) {
    REQUIRE(schedule.next({}) == i);
    schedule.begin(i);
    schedule.opened(i);
  }
}
