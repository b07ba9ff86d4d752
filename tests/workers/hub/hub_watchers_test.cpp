// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "tests/workers/hub/hub_fixture.h"
#include "workers/hub/hub.h"

using namespace millrace;
using namespace millrace::test;

TEST_CASE("a watcher gets copies of all batches, each with its tensor and all names") {
  HubUnderTest h;
  Link& watcher = h.watch();
  CHECK(!watcher.slabs);
  CHECK(watcher.others == 0);
  h.attach();
  CHECK(watcher.others == 1);
  h.open(1, "one", R"({"a":1})");
  h.row(1);
  h.mark(1, flag::last);
  const auto first = watcher.receive<HandedBatch>();
  CHECK(first.opened == std::vector<OpenedStream>{{StreamId{1}, 0, "one", R"({"a":1})"}});
  CHECK(values(first.tensor, 1) == std::vector{100, 101, 102, 0});
  const auto second = watcher.receive<HandedBatch>();
  CHECK(rows_of(second) == "1.1");
  CHECK(second.opened == std::vector<OpenedStream>{{StreamId{1}, 0, "one", ""}});
  CHECK(second.tensor.empty());
}

TEST_CASE("a watcher that is behind misses batches, which are counted") {
  HubUnderTest h;
  Link& watcher = h.watch();
  Link& worker = h.attach(3);
  h.open(1, "one");
  watcher.behind = std::size_t{4} << 20;
  h.row(1);
  CHECK(watcher.idle());
  CHECK(h.stats.watcher_misses.value() == 1);
  watcher.behind = std::size_t{3} << 20;
  h.row(1);
  CHECK(rows_of(watcher.receive<HandedBatch>()) == "1.1");
  CHECK(h.stats.watcher_misses.value() == 1);
  CHECK(rows_of(worker.receive<HandedBatch>()) == "1.0");
}

TEST_CASE("no copies are sent to a watcher that has disconnected") {
  HubUnderTest h;
  Link& watcher = h.watch();
  h.hub.lost(watcher, WorkerFailure::disconnect);
  h.attach();
  h.open(1);
  h.row(1);
  CHECK(watcher.idle());
  CHECK(h.stats.failures[WorkerFailure::disconnect].value() == 0);
}
