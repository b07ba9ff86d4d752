// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "tests/load/clients/simulated_clients_fixture.h"

using namespace millrace;
using namespace millrace::load;

TEST_CASE("streams commit after different packets of their utterances, and at their end") {
  SimulatedClientsFixture at(two, 4);
  at.begin();
  at.clients.advance(first_time + 2s);
  const auto due = [&](std::uint32_t client, std::uint64_t packet) {
    return at.schedule.due(client, packet);
  };
  // Client 0 commits after the packets 4 and 8, and at its end; client 1 after 7, 11 and its end.
  CHECK(at.transport.commits[0] == std::vector<Time>{due(0, 3), due(0, 7), due(0, 11)});
  CHECK(at.transport.commits[1] == std::vector<Time>{due(1, 6), due(1, 10), due(1, 11)});
  CHECK(at.clients.outcome().commits == 6);
}

TEST_CASE("the time of a final starts when its commit was due") {
  SimulatedClientsFixture at(two, 4);
  at.begin();
  at.clients.advance(first_time + 2s);
  const Time due = at.transport.commits[0][0];
  at.clients.finished(0, due, false, due + 7ms);
  at.clients.finished(0, at.transport.commits[0][1], true, due + 1s);
  const ClientOutcome& outcome = at.clients.outcome();
  CHECK(outcome.finals.all().count() == 2);
  CHECK(outcome.finished == 2);
  CHECK(outcome.failed == 1);
  at.clients.closed(0, std::nullopt, first_time + 2s);
  CHECK(outcome.unfinished == 1);
  CHECK(outcome.ended == 1);
  CHECK(outcome.lost == 0);
}

TEST_CASE("the first text that covers a packet counts from when the packet was due") {
  SimulatedClientsFixture at(two, 100);
  at.begin();
  at.clients.advance(first_time + 350ms);  // packets due at 0, 100, 200 and 300 ms
  at.clients.text(0, 0.05, first_time + 50ms);
  at.clients.text(0, 0.199, first_time + 103ms);
  at.clients.text(0, 0.2, first_time + 190ms);
  at.clients.text(0, 99, first_time + 302ms);
  const ClientOutcome& outcome = at.clients.outcome();
  CHECK(outcome.answered == 4);
  CHECK(outcome.results.all().count() == 2);
  CHECK(outcome.results.all().greatest() == 3ms);
}

TEST_CASE("text without a position counts from when the newest packet was due") {
  SimulatedClientsFixture at(two, 100);
  at.begin();
  at.clients.advance(first_time + 250ms);
  at.clients.text(0, std::nullopt, first_time + 205ms);
  CHECK(at.clients.outcome().results.all().count() == 0);
  CHECK(at.clients.outcome().texts.all().greatest() == 5ms);
}

TEST_CASE("a word of the own worker identifies its row") {
  SimulatedClientsFixture at(two, 100);
  at.begin();
  at.clients.advance(first_time + 250ms);
  at.clients.received(1, {.seq = 0, .begin = 0, .end = 1600, .data = "r-1-0-0-1600"}, first_time);
  at.clients.received(1, {.seq = 1, .begin = 1600, .end = 3200, .data = "r-0-0-1600-3200"},
                      first_time);
  CHECK(at.clients.outcome().wrong == 1);
  const auto row = parse_word("r-1-0-1600-3200");
  REQUIRE(row);
  CHECK(row->begin == 1600);
  CHECK(row->end == 3200);
  for (const char* other : {"", "r", "r-1-0-1600", "r-1-0-1600-x", "r-1-0-1-2-3", "1-0-1-2"})
    CHECK_FALSE(parse_word(other));
}
