// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "load/clients/due_cuts.h"
#include "tests/load/clients/simulated_clients_fixture.h"

using namespace millrace;
using namespace millrace::load;

namespace {

const LoadPlan cut_at_300ms{.streams = 2, .cut_all = 300ms, .warm_up = 0s, .length = 1s};

ReceivedResult first_result(const SimulatedClientsFixture& at, std::string& answer) {
  write_answer(answer, *parse_stream_name("run", at.names[0]), 0);
  return {.seq = 0, .begin = 0, .end = 1600, .data = answer};
}

}  // namespace

TEST_CASE("each thread takes the cuts of its own clients, in order") {
  Schedule schedule({.streams = 4, .cuts = 20, .warm_up = 0s, .length = 5s});
  schedule.start(first_time);
  DueCuts cuts(schedule, 1, 2);
  int count = 0;
  Time before = first_time;
  while (const auto due = cuts.take(first_time + 2s)) {
    CHECK(due->client % 2 == 1);
    CHECK(due->cut.at >= before);
    before = due->cut.at;
    ++count;
  }
  CHECK(count > 40);
  CHECK(count < 160);
  CHECK(cuts.next() > first_time + 2s);
}

TEST_CASE("a cut is due like a packet, and the times until the stream is back are measured") {
  SimulatedClientsFixture at(cut_at_300ms);
  at.begin();
  CHECK(at.clients.advance(first_time + 299ms) == first_time + 300ms);
  CHECK(at.transport.cuts.empty());
  at.clients.advance(first_time + 300ms);
  CHECK(at.transport.cuts == std::map<std::uint32_t, int>{{0, 1}, {1, 1}});
  at.clients.resumed(0, true, first_time + 310ms);
  at.clients.resumed(1, false, first_time + 320ms);
  std::string answer;
  at.clients.received(0, first_result(at, answer), first_time + 350ms);
  const ClientOutcome& outcome = at.clients.outcome();
  CHECK(outcome.cuts == 2);
  CHECK(outcome.resumed == 2);
  CHECK(outcome.reopened == 1);
  CHECK(outcome.returns.all().count() == 2);
  CHECK(outcome.returns.all().greatest() == 20ms);
  CHECK(outcome.recoveries.all().count() == 1);
  CHECK(outcome.recoveries.all().greatest() == 50ms);
}

TEST_CASE("without a connection there is no cut, and packets wait until the stream resumes") {
  SimulatedClientsFixture at(cut_at_300ms);
  at.begin();
  at.clients.advance(first_time + 299ms);
  at.transport.full = {0, 1};
  at.clients.advance(first_time + 500ms);
  CHECK(at.transport.cuts.empty());
  CHECK(at.clients.outcome().cuts == 0);
  const int sent = at.transport.sent[0];
  at.transport.full = {};
  at.clients.advance(first_time + 500ms);
  CHECK(at.transport.sent[0] == sent);
  at.clients.resumed(0, true, first_time + 500ms);
  at.clients.advance(first_time + 500ms);
  CHECK(at.transport.sent[0] == sent + 3);
}

TEST_CASE("a cut within a packet is done with the next packet that can be sent") {
  SimulatedClientsFixture at({.streams = 1, .cuts = 3, .warm_up = 0s, .length = 20s});
  at.begin();
  Time time = first_time;
  while (at.transport.parts == 0 && time < first_time + 20s) {
    time += 10ms;
    at.clients.advance(time);
    at.clients.resumed(0, true, time);
  }
  CHECK(at.transport.parts == 1);
  CHECK(at.transport.sent_with_cut == 1);
}
