// SPDX-License-Identifier: Apache-2.0
// Workers and watchers that break the protocol, fall silent or do not stay.
#include <catch2/catch.hpp>

#include "tests/workers/hub_fixture.h"

using namespace millrace;
using namespace millrace::test;

namespace {

constexpr Patience short_silence{.silence = 5ms, .answer = 1h, .first_answer = 1h};

std::uint64_t failures(const HubUnderTest& h, WorkerFailure why) {
  return h.stats.failures[why].value();
}

}  // namespace

TEST_CASE("a worker that gives back a batch which nobody has is cut") {
  HubUnderTest h;
  Link& worker = h.attach();
  h.done(worker, BatchId{7});
  CHECK(worker.take<Refused>().code == "protocol");
  CHECK(worker.ended);
  CHECK(failures(h, WorkerFailure::protocol) == 1);
  CHECK(h.stats.results[ResultStatus::late].value() == 0);
}

TEST_CASE("a worker that gives back a batch that another did before is cut") {
  HubUnderTest h;
  Link& one = h.attach();
  Link& other = h.attach();
  h.open(1);
  h.open(2);
  h.row(1);
  h.row(2);
  const BatchId first = one.take<HandedBatch>().id, second = other.take<HandedBatch>().id;
  h.done(one, first);
  h.done(other, second);
  h.done(other, first);
  CHECK(other.take<Refused>().code == "protocol");
  CHECK(failures(h, WorkerFailure::protocol) == 1);
  CHECK(h.stats.results[ResultStatus::late].value() == 0);
  CHECK(!one.ended);
}

TEST_CASE("what an ended connection still sends is ignored") {
  HubUnderTest h;
  Link& worker = h.attach();
  h.hub.receive(worker, Hello{});
  (void)worker.take<Refused>();
  h.hub.receive(worker, Hello{});
  h.hub.receive(worker, Bye{});
  h.done(worker, BatchId{7});
  h.hub.lost(worker, WorkerFailure::disconnect);
  CHECK(worker.idle());
  CHECK(failures(h, WorkerFailure::protocol) == 1);
  CHECK(failures(h, WorkerFailure::disconnect) == 0);
}

TEST_CASE("a worker that said Bye and hangs up while it has a stream is a lost one") {
  HubUnderTest h;
  h.open(1);
  h.row(1);
  Link& worker = h.attach();
  h.done(worker, worker.take<HandedBatch>().id);
  h.hub.receive(worker, Bye{});
  CHECK(worker.idle());  // no other has room for its stream
  h.hub.lost(worker, WorkerFailure::disconnect);
  CHECK(failures(h, WorkerFailure::disconnect) == 1);
  Link& next = h.attach();
  h.row(1);
  CHECK(rows_of(next.take<HandedBatch>()) == "1.1R");
}

TEST_CASE("a worker that said Bye and is told Bye may hang up") {
  HubUnderTest h;
  Link& worker = h.attach();
  h.hub.receive(worker, Bye{});
  (void)worker.take<Bye>();
  h.hub.lost(worker, WorkerFailure::disconnect);
  CHECK(failures(h, WorkerFailure::disconnect) == 0);
}

TEST_CASE("a worker that says Bye again and again is heard once") {
  HubUnderTest h;
  h.open(1);
  h.row(1);
  Link& worker = h.attach();
  h.lines.clear();
  for (int i = 0; i < 3; ++i) h.hub.receive(worker, Bye{});
  CHECK(h.lines == std::vector<std::string>{"worker leaves"});
  CHECK(!worker.ended);
}

TEST_CASE("a watcher that sends what is not for it to send is cut") {
  HubUnderTest h;
  Link& watcher = h.watch();
  SECTION("a batch") { h.hub.receive(watcher, Done{}); }
  SECTION("a second Hello") { h.hub.receive(watcher, Hello{}); }
  CHECK(watcher.take<Refused>().code == "protocol");
  CHECK(watcher.ended);
  CHECK(failures(h, WorkerFailure::protocol) == 1);
  h.hub.lost(watcher, WorkerFailure::disconnect);
  h.attach();
  h.open(1);
  h.row(1);
  CHECK(watcher.idle());
}

TEST_CASE("a watcher that says Bye is told Bye") {
  HubUnderTest h;
  Link& watcher = h.watch();
  h.hub.receive(watcher, Heartbeat{});
  CHECK(watcher.idle());
  h.hub.receive(watcher, Bye{});
  (void)watcher.take<Bye>();
  CHECK(watcher.ended);
}

TEST_CASE("a watcher that is silent is cut, which is no failure") {
  HubUnderTest h(short_silence);
  Link& watcher = h.watch();
  h.run_until([&] { return watcher.ended; });
  CHECK(watcher.take<Refused>().code == "timeout");
  CHECK(failures(h, WorkerFailure::timeout) == 0);
}

TEST_CASE("heartbeats do not pile up in front of a worker that does not read") {
  HubUnderTest h;
  Link& reads = h.attach();
  Link& sleeps = h.attach();
  Link& watcher = h.watch();
  sleeps.behind = watcher.behind = 1;
  h.run_until([&] { return reads.beats > 0; });
  CHECK(sleeps.beats == 0);
  CHECK(watcher.beats == 0);
}

TEST_CASE("a worker whose process cannot be watched is refused, and its slabs given back") {
  HubUnderTest h;
  Link& worker = h.connect();
  worker.out_of_descriptors = true;
  h.hub.hello(worker, {.name = "w"});
  CHECK(worker.take<Refused>().code == "internal");
  CHECK(worker.ended);
  CHECK(h.slab_bytes.taken() == 0);
  h.attach();
}

TEST_CASE("who says Hello to a service that stops is refused") {
  HubUnderTest h;
  h.hub.dismiss();
  for (const bool watch : {false, true}) {
    Link& late = h.connect({.name = "w", .watch = watch});
    CHECK(late.take<Refused>().code == "stopping");
    CHECK(late.ended);
  }
  CHECK(h.slab_bytes.taken() == 0);
}
