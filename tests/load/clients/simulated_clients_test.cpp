// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "tests/load/clients/simulated_clients_fixture.h"

using namespace millrace;
using namespace millrace::load;

TEST_CASE("a stream's name identifies its client and first packet") {
  const std::string name = stream_name("b12", {9999, 41});
  const auto client = parse_stream_name("b12", name);
  REQUIRE(client);
  CHECK(client->client == 9999);
  CHECK(client->first == 41);
  for (const char* other :
       {"b12", "b12-1", "b12-1-", "b12-x-1", "b12-1-2-3", "c12-1-2", "b123-1-2"})
    CHECK_FALSE(parse_stream_name("b12", other));
}

TEST_CASE("every packet is sent when it is due, and not before") {
  SimulatedClientsFixture at(two);
  at.begin();
  CHECK(at.clients.advance(first_time - 1ns) == first_time);
  CHECK(at.transport.sent.empty());
  CHECK(at.clients.advance(first_time) == first_time + 50ms);
  CHECK(at.transport.sent == std::map<std::uint32_t, int>{{0, 1}});
  CHECK(at.clients.advance(first_time + 50ms) == first_time + 100ms);
  CHECK(at.transport.sent == std::map<std::uint32_t, int>{{0, 1}, {1, 1}});
}

TEST_CASE("packets that could not be sent in time are all sent later") {
  SimulatedClientsFixture at(two);
  at.begin();
  at.clients.advance(first_time + 449ms);
  CHECK(at.transport.sent == std::map<std::uint32_t, int>{{0, 5}, {1, 4}});
}

TEST_CASE("a stream that was full continues at its position once it is writable") {
  SimulatedClientsFixture at(two);
  at.begin();
  at.transport.full = {0};
  at.clients.advance(first_time + 250ms);
  CHECK(at.transport.sent == std::map<std::uint32_t, int>{{1, 3}});
  at.transport.full = {};
  at.clients.writable(0);
  at.clients.advance(first_time + 250ms);
  CHECK(at.transport.sent == std::map<std::uint32_t, int>{{0, 3}, {1, 3}});
}

TEST_CASE("streams end after the schedule, and the run is over when they are closed") {
  SimulatedClientsFixture at(two);
  at.begin();
  CHECK(at.clients.advance(first_time + 2s));
  CHECK(at.transport.sent == std::map<std::uint32_t, int>{{0, 12}, {1, 12}});
  CHECK(at.transport.ended == std::vector<std::uint32_t>{0, 1});
  at.clients.closed(0, StreamTotals{12 * 1600, 0}, first_time + 2s);
  CHECK(at.clients.advance(first_time + 2s));
  at.clients.closed(1, StreamTotals{11 * 1600, 0}, first_time + 2s);
  CHECK_FALSE(at.clients.advance(first_time + 2s));
  const ClientOutcome& outcome = at.clients.outcome();
  CHECK(outcome.packets == 24);
  CHECK(outcome.ended == 2);
  CHECK(outcome.frames_ended == 24 * 1600);
  CHECK(outcome.lost == 1600);
}

TEST_CASE("if all streams are closed early, the run is over at the end of the schedule") {
  SimulatedClientsFixture at(two);
  at.begin();
  const Time closed = at.schedule.last() - 10ms;
  at.clients.advance(closed);
  for (const std::uint32_t client : {0u, 1u})
    at.clients.closed(client, StreamTotals{12 * 1600, 12}, closed);
  CHECK(at.clients.advance(closed) == at.schedule.last());
  CHECK_FALSE(at.clients.advance(at.schedule.last()));
}

TEST_CASE("streams that the service does not close count as broken") {
  SimulatedClientsFixture at(two);
  at.begin();
  at.clients.advance(first_time + 2s);
  at.clients.abort_remaining(first_time + 3s);
  CHECK(at.clients.outcome().broken == 2);
  CHECK(at.transport.disconnected.size() == 2);
  CHECK_FALSE(at.clients.advance(first_time + 3s));
}

TEST_CASE("a stream whose life is over is replaced by another one of its client") {
  LoadPlan plan{.streams = 1, .life = 300ms, .warm_up = 0s, .length = 100s};
  SimulatedClientsFixture at(plan);
  at.begin();
  const std::uint64_t packets = at.schedule.packets_of_life(0, 0);
  const Time last = at.schedule.due(0, packets - 1);
  at.clients.advance(last);
  REQUIRE(at.transport.ended.size() == 1);
  CHECK(at.transport.sent[0] == static_cast<int>(packets));
  at.clients.closed(0, StreamTotals{packets * 1600, packets}, last + 1ms);
  at.clients.advance(last + 1ms);
  CHECK(at.transport.opened[0] == stream_name("run", {0, packets}));
}

TEST_CASE("streams disconnect without an end, and the time is recorded") {
  LoadPlan plan{.streams = 1, .life = 300ms, .aborts = 1, .warm_up = 0s, .length = 100s};
  SimulatedClientsFixture at(plan);
  at.begin();
  at.clients.advance(at.schedule.due(0, at.schedule.packets_of_life(0, 0) - 1));
  CHECK(at.transport.ended.empty());
  CHECK(at.transport.disconnected == std::vector<std::uint32_t>{0});
  CHECK(at.clients.outcome().disconnects.contains({0, 0}));
  CHECK(at.clients.outcome().disconnected == 1);
}

TEST_CASE("the time of a result starts when its last packet was due") {
  SimulatedClientsFixture at(two);
  at.begin();
  at.clients.advance(first_time + 250ms);
  at.clients.received(1, {.seq = 0, .begin = 0, .end = 1600}, first_time + 53ms);
  at.clients.received(1, {.seq = 1, .begin = 1600, .end = 3200}, first_time + 153ms);
  const Histogram results = at.clients.outcome().results.all();
  CHECK(results.count() == 2);
  CHECK(results.greatest() == 3ms);
}

TEST_CASE("duplicate and late results are counted as repeated") {
  SimulatedClientsFixture at(two);
  at.begin();
  at.clients.advance(first_time + 2s);
  at.clients.received(0, {.seq = 0, .begin = 0, .end = 1600}, first_time);
  at.clients.received(0, {.seq = 0, .begin = 0, .end = 1600}, first_time);
  at.clients.received(0, {.seq = 2, .begin = 3200, .end = 4800}, first_time);
  at.clients.received(0, {.seq = 1, .begin = 1600, .end = 3200}, first_time);
  CHECK(at.clients.outcome().answered == 4);
  CHECK(at.clients.outcome().repeated == 2);
  at.clients.closed(0, StreamTotals{12 * 1600, 12}, first_time + 2s);
  CHECK(at.clients.outcome().unanswered == 10);
}

TEST_CASE("results of bodies that overlap are in order") {
  SimulatedClientsFixture at(two);
  at.begin();
  at.clients.advance(first_time + 250ms);
  at.clients.received(0, {.seq = 0, .begin = 0, .end = 1600}, first_time);
  at.clients.received(0, {.seq = 1, .begin = 1200, .end = 2800}, first_time);
  at.clients.received(0, {.seq = 2, .begin = 1200, .end = 2800}, first_time);
  CHECK(at.clients.outcome().repeated == 1);
}

TEST_CASE("a result of frames that were not sent is wrong, and answers no row") {
  SimulatedClientsFixture at(two);
  at.begin();
  at.clients.advance(first_time + 2s);
  at.clients.received(0, {.seq = 0, .begin = 0, .end = 12 * 1600 + 1}, first_time);
  at.clients.closed(0, StreamTotals{12 * 1600, 1}, first_time + 2s);
  CHECK(at.clients.outcome().wrong == 1);
  CHECK(at.clients.outcome().unanswered == 1);
  CHECK(at.clients.outcome().results.all().count() == 0);
}

TEST_CASE("missing frames are shed if a result has a gap, otherwise lost") {
  SimulatedClientsFixture at(two);
  at.begin();
  at.clients.advance(first_time + 2s);
  at.clients.received(0, {.seq = 1, .begin = 3200, .end = 4800, .gap = true}, first_time);
  at.clients.closed(0, StreamTotals{10 * 1600, 9}, first_time + 2s);
  at.clients.closed(1, StreamTotals{11 * 1600, 11}, first_time + 2s);
  CHECK(at.clients.outcome().shed == 2 * 1600);
  CHECK(at.clients.outcome().lost == 1600);
}

TEST_CASE("a stream that ends unexpectedly is broken, and is not replaced") {
  SimulatedClientsFixture at(two);
  at.begin();
  at.clients.advance(first_time + 50ms);
  at.clients.broken(0, "the service disconnected", first_time + 60ms);
  at.clients.closed(1, StreamTotals{1600, 1}, first_time + 60ms);
  CHECK(at.clients.outcome().broken == 2);
  CHECK(at.clients.outcome().ended == 0);
  at.clients.advance(first_time + 500ms);
  CHECK(at.transport.opened.empty());
  CHECK(at.transport.sent == std::map<std::uint32_t, int>{{0, 1}, {1, 1}});
}

TEST_CASE("a refused stream is counted by its reason, and not opened again") {
  SimulatedClientsFixture at(two);
  at.clients.continue_opening(first_time);
  at.clients.refused(0, "503", first_time);
  at.clients.opened(1, first_time);
  CHECK_FALSE(at.clients.continue_opening(first_time));
  at.schedule.start(first_time);
  at.clients.advance(first_time + 2s);
  CHECK(at.clients.outcome().refused == std::map<std::string, std::uint64_t>{{"503", 1}});
  CHECK(at.transport.sent == std::map<std::uint32_t, int>{{1, 12}});
}

TEST_CASE("an answer of another row is detected") {
  SimulatedClientsFixture at(two);
  at.begin();
  at.clients.advance(first_time + 2s);
  at.clients.received(1, {.seq = 0, .begin = 0, .end = 1600, .data = R"("1-0-0")"}, first_time);
  at.clients.received(1, {.seq = 1, .begin = 1600, .end = 3200, .data = R"("0-0-1600")"},
                      first_time);
  CHECK(at.clients.outcome().wrong == 1);
}

TEST_CASE("streams without a response count as refused after a time") {
  SimulatedClientsFixture at(two);
  CHECK(at.clients.continue_opening(first_time));
  at.clients.opened(0, first_time + 5s);
  CHECK(at.clients.continue_opening(first_time + 15s));
  CHECK_FALSE(at.clients.continue_opening(first_time + 15s + 1ns));
  CHECK(at.clients.outcome().refused == std::map<std::string, std::uint64_t>{{"no answer", 1}});
  CHECK(at.transport.disconnected == std::vector<std::uint32_t>{1});
}

TEST_CASE("waiting for a full connection is not lateness of the generator") {
  SimulatedClientsFixture at(two);
  at.begin();
  at.transport.full = {0};
  at.clients.advance(first_time);
  at.transport.full = {};
  at.clients.writable(0);
  at.clients.advance(first_time + 90ms);
  CHECK(at.transport.sent[0] == 1);
  CHECK(at.clients.outcome().lateness.all().count() == 2);
}

TEST_CASE("a packet due before its stream was open is not lateness of the generator") {
  SimulatedClientsFixture at(two);
  at.clients.continue_opening(first_time);
  at.clients.opened(0, first_time);
  at.clients.opened(1, first_time + 100ms);
  at.schedule.start(first_time);
  at.clients.advance(first_time + 199ms);  // due at 0, 100; 50, 150
  CHECK(at.transport.sent == std::map<std::uint32_t, int>{{0, 2}, {1, 2}});
  CHECK(at.clients.outcome().lateness.all().count() == 3);
}

TEST_CASE("more frames than were sent count as lost, like fewer") {
  SimulatedClientsFixture at(two);
  at.begin();
  at.clients.advance(first_time + 2s);
  at.clients.closed(0, StreamTotals{12 * 1600 + 7, 12}, first_time + 2s);
  at.clients.closed(1, StreamTotals{12 * 1600 - 7, 12}, first_time + 2s);
  CHECK(at.clients.outcome().lost == 14);
}

TEST_CASE("the number of streams that are opened at the same time is limited") {
  SimulatedClientsFixture at({.streams = 1000});
  CHECK(at.clients.continue_opening(first_time));
  const std::size_t first = at.transport.opened.size();
  CHECK(first < 1000);
  CHECK(at.clients.continue_opening(first_time));
  CHECK(at.transport.opened.size() == first);
  at.begin();
  CHECK(at.names.size() == 1000);
}
