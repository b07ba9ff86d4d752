// SPDX-License-Identifier: Apache-2.0
#include "streams/waiting_events.h"

#include <catch2/catch.hpp>

using namespace millrace;
using Kind = Event::Kind;

namespace {

Time instant(int ms) { return Time(std::chrono::milliseconds(ms)); }

void push_frames(WaitingEvents& events, std::uint64_t count, Time now) {
  events.push({.kind = Kind::frames, .count = count}, now);
}

}  // namespace

TEST_CASE("frames of one instant wait as one event") {
  WaitingEvents events;
  push_frames(events, 10, instant(1));
  push_frames(events, 20, instant(1));
  push_frames(events, 40, instant(2));
  CHECK(events.size() == 2);
  CHECK(events.take(1000).event.count == 30);
  CHECK(events.front().arrived == instant(2));
}

TEST_CASE("frames can be taken in parts") {
  WaitingEvents events;
  push_frames(events, 10, instant(1));
  CHECK(events.take(4).event.count == 4);
  CHECK(events.take(4).event.count == 4);
  const auto last = events.take(4);
  CHECK(last.event.count == 2);
  CHECK(last.arrived == instant(1));
  CHECK(events.empty());
}

TEST_CASE("frames are not merged across other events") {
  WaitingEvents events;
  push_frames(events, 10, instant(1));
  events.push({.kind = Kind::flush, .mark = 7}, instant(1));
  push_frames(events, 20, instant(1));
  CHECK(events.size() == 3);
  CHECK(events.take(10).event.kind == Kind::frames);
  CHECK(events.take(0).event.mark == 7u);
  CHECK(events.take(20).event.count == 20);
}

TEST_CASE("frames alone are merged into at most 32 events") {
  WaitingEvents events;
  for (int i = 0; i < 1000; ++i) push_frames(events, 1, instant(i));
  CHECK(events.size() == 32);
  std::uint64_t frames = 0;
  Time before{};
  while (!events.empty()) {
    const auto [event, arrived] = events.take(1000);
    frames += event.count;
    CHECK(arrived >= before);
    before = arrived;
  }
  CHECK(frames == 1000);
}

TEST_CASE("merged frames have the instant of the first of them") {
  WaitingEvents events;
  for (int i = 0; i < 34; ++i) push_frames(events, 1, instant(i));
  for (int i = 0; i < 31; ++i) (void)events.take(1);
  const auto [event, arrived] = events.take(1000);
  CHECK(event.count == 3);
  CHECK(arrived == instant(31));
}
