// SPDX-License-Identifier: Apache-2.0
#include "load/clients/crowd.h"

#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>
#include <vector>

using namespace millrace;
using namespace millrace::load;
using namespace std::chrono_literals;

namespace {

const Time start{1h};

// Notes what the crowd does; tells it what the test wants.
class ScriptedDoor final : public ClientDoor {
 public:
  void open(std::uint32_t place, const std::string& name) override { opened[place] = name; }
  bool send(std::uint32_t place, Bytes) override {
    if (full.contains(place)) return false;
    ++sent[place];
    return true;
  }
  void end(std::uint32_t place) override { ended.push_back(place); }
  void vanish(std::uint32_t place) override { vanished.push_back(place); }
  void poll(Time, ClientSink&) override {}

  std::map<std::uint32_t, std::string> opened;
  std::map<std::uint32_t, int> sent;
  std::set<std::uint32_t> full;
  std::vector<std::uint32_t> ended, vanished;
};

struct Fixture {
  explicit Fixture(const LoadPlan& plan) : schedule(plan), crowd(run, 0, 1, door) {}

  // Every stream is open, and the schedule has begun.
  void begin() {
    while (crowd.go_on_opening(start)) open_all();
    schedule.start(start);
  }
  void open_all() {
    for (const auto& [place, name] : std::exchange(door.opened, {})) {
      names.push_back(name);
      crowd.opened(place, start);
    }
  }

  Schedule schedule;
  Content content{schedule, FrameType{}};
  RunFacts run{schedule, content, "run", true};
  ScriptedDoor door;
  Crowd crowd;
  std::vector<std::string> names;
};

const LoadPlan two{.streams = 2, .warm_up = 0s, .length = 1s};

}  // namespace

TEST_CASE("a stream's name says whose it is") {
  const std::string name = stream_name("b12", {9999, 41});
  const auto place = place_of("b12", name);
  REQUIRE(place);
  CHECK(place->place == 9999);
  CHECK(place->first == 41);
  for (const char* other :
       {"b12", "b12-1", "b12-1-", "b12-x-1", "b12-1-2-3", "c12-1-2", "b123-1-2"})
    CHECK_FALSE(place_of("b12", other));
}

TEST_CASE("every packet is sent when it is due, and not before") {
  Fixture at(two);
  at.begin();
  CHECK(at.crowd.go_on(start - 1ns) == start);
  CHECK(at.door.sent.empty());
  CHECK(at.crowd.go_on(start) == start + 50ms);
  CHECK(at.door.sent == std::map<std::uint32_t, int>{{0, 1}});
  CHECK(at.crowd.go_on(start + 50ms) == start + 100ms);
  CHECK(at.door.sent == std::map<std::uint32_t, int>{{0, 1}, {1, 1}});
}

TEST_CASE("packets that could not be sent in time are all sent later") {
  Fixture at(two);
  at.begin();
  at.crowd.go_on(start + 449ms);
  CHECK(at.door.sent == std::map<std::uint32_t, int>{{0, 5}, {1, 4}});
}

TEST_CASE("a stream that finds no room goes on where it stood when there is some") {
  Fixture at(two);
  at.begin();
  at.door.full = {0};
  at.crowd.go_on(start + 250ms);
  CHECK(at.door.sent == std::map<std::uint32_t, int>{{1, 3}});
  at.door.full = {};
  at.crowd.has_room(0);
  at.crowd.go_on(start + 250ms);
  CHECK(at.door.sent == std::map<std::uint32_t, int>{{0, 3}, {1, 3}});
}

TEST_CASE("streams end behind the schedule, and all is over when they are closed") {
  Fixture at(two);
  at.begin();
  CHECK(at.crowd.go_on(start + 2s));
  CHECK(at.door.sent == std::map<std::uint32_t, int>{{0, 12}, {1, 12}});
  CHECK(at.door.ended == std::vector<std::uint32_t>{0, 1});
  at.crowd.closed(0, 12 * 1600, 0, start + 2s);
  CHECK(at.crowd.go_on(start + 2s));
  at.crowd.closed(1, 11 * 1600, 0, start + 2s);
  CHECK_FALSE(at.crowd.go_on(start + 2s));
  const ClientOutcome& outcome = at.crowd.outcome();
  CHECK(outcome.packets == 24);
  CHECK(outcome.ended == 2);
  CHECK(outcome.frames_ended == 24 * 1600);
  CHECK(outcome.lost == 1600);
}

TEST_CASE("streams closed before the schedule is over are waited for no longer than that") {
  Fixture at(two);
  at.begin();
  const Time closed = at.schedule.last() - 10ms;
  at.crowd.go_on(closed);
  for (const std::uint32_t place : {0u, 1u}) at.crowd.closed(place, 12 * 1600, 12, closed);
  CHECK(at.crowd.go_on(closed) == at.schedule.last());
  CHECK_FALSE(at.crowd.go_on(at.schedule.last()));
}

TEST_CASE("streams that nobody closes are broken in the end") {
  Fixture at(two);
  at.begin();
  at.crowd.go_on(start + 2s);
  at.crowd.give_up(start + 3s);
  CHECK(at.crowd.outcome().broken == 2);
  CHECK(at.door.vanished.size() == 2);
  CHECK_FALSE(at.crowd.go_on(start + 3s));
}

TEST_CASE("a life over is followed by another stream at its place") {
  LoadPlan plan{.streams = 1, .life = 300ms, .warm_up = 0s, .length = 100s};
  Fixture at(plan);
  at.begin();
  const std::uint64_t packets = at.schedule.packets_of_life(0, 0);
  const Time last = at.schedule.due(0, packets - 1);
  at.crowd.go_on(last);
  REQUIRE(at.door.ended.size() == 1);
  CHECK(at.door.sent[0] == static_cast<int>(packets));
  at.crowd.closed(0, packets * 1600, packets, last + 1ms);
  at.crowd.go_on(last + 1ms);
  CHECK(at.door.opened[0] == stream_name("run", {0, packets}));
}

TEST_CASE("those that vanish do so without an end, and it is known when") {
  LoadPlan plan{.streams = 1, .life = 300ms, .aborts = 1, .warm_up = 0s, .length = 100s};
  Fixture at(plan);
  at.begin();
  at.crowd.go_on(at.schedule.due(0, at.schedule.packets_of_life(0, 0) - 1));
  CHECK(at.door.ended.empty());
  CHECK(at.door.vanished == std::vector<std::uint32_t>{0});
  CHECK(at.crowd.outcome().vanishings.contains({0, 0}));
  CHECK(at.crowd.outcome().vanished == 1);
}

TEST_CASE("results count from when the packet was due that ends them") {
  Fixture at(two);
  at.begin();
  at.crowd.go_on(start + 250ms);
  at.crowd.told(1, {.seq = 0, .begin = 0, .end = 1600}, start + 53ms);
  at.crowd.told(1, {.seq = 1, .begin = 1600, .end = 3200}, start + 153ms);
  const Histogram results = at.crowd.outcome().results.all();
  CHECK(results.count() == 2);
  CHECK(results.greatest() == 3ms);
}

TEST_CASE("a result that comes twice, or after a later one, is counted as such") {
  Fixture at(two);
  at.begin();
  at.crowd.go_on(start + 2s);
  at.crowd.told(0, {.seq = 0, .begin = 0, .end = 1600}, start);
  at.crowd.told(0, {.seq = 0, .begin = 0, .end = 1600}, start);
  at.crowd.told(0, {.seq = 2, .begin = 3200, .end = 4800}, start);
  at.crowd.told(0, {.seq = 1, .begin = 1600, .end = 3200}, start);
  CHECK(at.crowd.outcome().answered == 4);
  CHECK(at.crowd.outcome().repeated == 2);
  at.crowd.closed(0, 12 * 1600, 12, start + 2s);
  CHECK(at.crowd.outcome().unanswered == 10);
}

TEST_CASE("results of bodies that overlap are in order") {
  Fixture at(two);
  at.begin();
  at.crowd.go_on(start + 250ms);
  at.crowd.told(0, {.seq = 0, .begin = 0, .end = 1600}, start);
  at.crowd.told(0, {.seq = 1, .begin = 1200, .end = 2800}, start);
  at.crowd.told(0, {.seq = 2, .begin = 1200, .end = 2800}, start);
  CHECK(at.crowd.outcome().repeated == 1);
}

TEST_CASE("a result of frames that were not sent is wrong, and answers nothing") {
  Fixture at(two);
  at.begin();
  at.crowd.go_on(start + 2s);
  at.crowd.told(0, {.seq = 0, .begin = 0, .end = 12 * 1600 + 1}, start);
  at.crowd.closed(0, 12 * 1600, 1, start + 2s);
  CHECK(at.crowd.outcome().wrong == 1);
  CHECK(at.crowd.outcome().unanswered == 1);
  CHECK(at.crowd.outcome().results.all().count() == 0);
}

TEST_CASE("frames short of what was sent are shed where a result says so, and else lost") {
  Fixture at(two);
  at.begin();
  at.crowd.go_on(start + 2s);
  at.crowd.told(0, {.seq = 1, .begin = 3200, .end = 4800, .gap = true}, start);
  at.crowd.closed(0, 10 * 1600, 9, start + 2s);
  at.crowd.closed(1, 11 * 1600, 11, start + 2s);
  CHECK(at.crowd.outcome().shed == 2 * 1600);
  CHECK(at.crowd.outcome().lost == 1600);
}

TEST_CASE("a stream that ends unasked is broken, and none follows it") {
  Fixture at(two);
  at.begin();
  at.crowd.go_on(start + 50ms);
  at.crowd.broken(0, "it hung up", start + 60ms);
  at.crowd.closed(1, 1600, 1, start + 60ms);
  CHECK(at.crowd.outcome().broken == 2);
  CHECK(at.crowd.outcome().ended == 0);
  at.crowd.go_on(start + 500ms);
  CHECK(at.door.opened.empty());
  CHECK(at.door.sent == std::map<std::uint32_t, int>{{0, 1}, {1, 1}});
}

TEST_CASE("who is refused is counted by what it was told, and stays away") {
  Fixture at(two);
  at.crowd.go_on_opening(start);
  at.crowd.refused(0, "503", start);
  at.crowd.opened(1, start);
  CHECK_FALSE(at.crowd.go_on_opening(start));
  at.schedule.start(start);
  at.crowd.go_on(start + 2s);
  CHECK(at.crowd.outcome().refused == std::map<std::string, std::uint64_t>{{"503", 1}});
  CHECK(at.door.sent == std::map<std::uint32_t, int>{{1, 12}});
}

TEST_CASE("an answer that is another row's is seen") {
  Fixture at(two);
  at.begin();
  at.crowd.go_on(start + 2s);
  at.crowd.told(1, {.seq = 0, .begin = 0, .end = 1600, .data = R"("1-0-0")"}, start);
  at.crowd.told(1, {.seq = 1, .begin = 1600, .end = 3200, .data = R"("0-0-1600")"}, start);
  CHECK(at.crowd.outcome().wrong == 1);
}

TEST_CASE("streams for which nothing is answered are refused in the end") {
  Fixture at(two);
  CHECK(at.crowd.go_on_opening(start));
  at.crowd.opened(0, start + 5s);
  CHECK(at.crowd.go_on_opening(start + 15s));
  CHECK_FALSE(at.crowd.go_on_opening(start + 15s + 1ns));
  CHECK(at.crowd.outcome().refused == std::map<std::string, std::uint64_t>{{"no answer", 1}});
  CHECK(at.door.vanished == std::vector<std::uint32_t>{1});
}

TEST_CASE("what waits for room is late by the service, not by us") {
  Fixture at(two);
  at.begin();
  at.door.full = {0};
  at.crowd.go_on(start);
  at.door.full = {};
  at.crowd.has_room(0);
  at.crowd.go_on(start + 90ms);
  CHECK(at.door.sent[0] == 1);
  CHECK(at.crowd.outcome().lateness.all().count() == 2);
}

TEST_CASE("what was due before its stream was open is late by the service, not by us") {
  Fixture at(two);
  at.crowd.go_on_opening(start);
  at.crowd.opened(0, start);
  at.crowd.opened(1, start + 100ms);
  at.schedule.start(start);
  at.crowd.go_on(start + 199ms);  // due at 0, 100; 50, 150
  CHECK(at.door.sent == std::map<std::uint32_t, int>{{0, 2}, {1, 2}});
  CHECK(at.crowd.outcome().lateness.all().count() == 3);
}

TEST_CASE("more frames than were sent are as wrong as fewer") {
  Fixture at(two);
  at.begin();
  at.crowd.go_on(start + 2s);
  at.crowd.closed(0, 12 * 1600 + 7, 12, start + 2s);
  at.crowd.closed(1, 12 * 1600 - 7, 12, start + 2s);
  CHECK(at.crowd.outcome().lost == 14);
}

TEST_CASE("only so many streams are being opened at a time") {
  Fixture at({.streams = 1000});
  CHECK(at.crowd.go_on_opening(start));
  const std::size_t first = at.door.opened.size();
  CHECK(first < 1000);
  CHECK(at.crowd.go_on_opening(start));
  CHECK(at.door.opened.size() == first);
  at.begin();
  CHECK(at.names.size() == 1000);
}
