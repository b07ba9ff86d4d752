// SPDX-License-Identifier: Apache-2.0
// The instants of returned rows, and the gauges of a pipeline's lanes.
#include <catch2/catch.hpp>

#include "tests/workers/hub/hub_fixture.h"
#include "workers/hub/hub.h"

using namespace millrace;
using namespace millrace::test;

namespace {

const Instants& instants_of_done(const HubUnderTest& h) {
  for (const Returned& one : h.back)
    if (const auto* done = std::get_if<RowDone>(&one.what)) return done->at;
  throw std::runtime_error("no row is done");
}

std::int64_t items(const HubUnderTest& h, LaneQueue queue) { return h.stats.items[queue].value(); }

}  // namespace

TEST_CASE("a row is done when the service received its answer, not when the worker sent it") {
  HubUnderTest h;
  Link& worker = h.attach();
  h.open(1);
  h.row(1);
  const auto batch = worker.receive<HandedBatch>();
  const Time before = Clock::now();
  h.hub.receive(worker, Done{batch.id, {}, {}, batch.copied, batch.copied});
  h.run();
  CHECK(instants_of_done(h).taken == batch.copied);
  CHECK(instants_of_done(h).done >= before);
  CHECK(h.stats.compute.sum() == 0);  // by the worker's clock
}

TEST_CASE("the time of a row at a worker that was lost counts as handover, not as batch") {
  HubUnderTest h;
  Link& lost = h.attach(1);
  h.open(1);
  h.row(1);
  const auto first = lost.receive<HandedBatch>();
  h.hub.lost(lost, WorkerFailure::disconnect, LossCause::service);
  const Time between = Clock::now();
  Link& worker = h.attach();
  const auto second = worker.receive<HandedBatch>();
  const Duration at_lost = between - first.closed;  // or a little less
  h.done(worker, second.id);
  const Instants& at = instants_of_done(h);
  CHECK(at.closed < second.closed);
  CHECK(at.closed >= second.closed - at_lost);
  CHECK(at.copied - at.closed == second.copied - second.closed);
  CHECK(at.taken >= second.copied);
}

TEST_CASE("rows whose streams wait for a worker are rows that wait for a batch") {
  HubUnderTest h;
  h.open(1);
  h.row(1);
  h.row(1);
  CHECK(h.stats.received.value() == 2);
  CHECK(items(h, LaneQueue::batch) == 2);
  Link& worker = h.attach(1);
  CHECK(items(h, LaneQueue::batch) == 1);
  CHECK(items(h, LaneQueue::worker) == 1);
  h.hub.lost(worker, WorkerFailure::disconnect);
  CHECK(items(h, LaneQueue::batch) == 2);
  CHECK(items(h, LaneQueue::worker) == 0);
  CHECK(h.stats.received.value() == 2);
}

TEST_CASE("slots of attached workers are used or free, and a leaving worker has no free slots") {
  HubUnderTest h;
  const auto slots = [&] {
    return std::pair(h.stats.slots[SlotState::used].value(),
                     h.stats.slots[SlotState::free].value());
  };
  CHECK(slots() == std::pair<std::int64_t, std::int64_t>(0, 0));
  Link& worker = h.attach();
  CHECK(slots() == std::pair<std::int64_t, std::int64_t>(0, 2));
  h.open(1);
  h.row(1);
  CHECK(slots() == std::pair<std::int64_t, std::int64_t>(1, 1));
  h.hub.receive(worker, Bye{});
  CHECK(slots() == std::pair<std::int64_t, std::int64_t>(1, 0));
  h.hub.lost(worker, WorkerFailure::disconnect);
  CHECK(slots() == std::pair<std::int64_t, std::int64_t>(0, 0));
}

TEST_CASE("workers are listed while they are attached, with the last failure of their name") {
  HubUnderTest h;
  Link& leaves = h.attach();
  h.hub.receive(leaves, Bye{});
  h.run();
  CHECK(h.hub.workers(Clock::now()).empty());
  Link& lost = h.attach();
  REQUIRE(h.hub.workers(Clock::now()).size() == 1);
  CHECK(!h.hub.workers(Clock::now())[0].last_failure);  // the first has left
  h.hub.lost(lost, WorkerFailure::disconnect);
  CHECK(h.hub.workers(Clock::now()).empty());
  (void)h.attach();
  const auto again = h.hub.workers(Clock::now());
  REQUIRE(again.size() == 1);
  CHECK(again[0].name == "w");
  CHECK(!again[0].remote);
  CHECK(again[0].attached < 1h);
  REQUIRE(again[0].last_failure);
  CHECK(again[0].last_failure->why == "disconnect");
}
