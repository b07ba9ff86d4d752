// SPDX-License-Identifier: Apache-2.0
// Workers and watchers that break the protocol, fall silent or do not stay.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <future>

#include "tests/support/allocations.h"
#include "tests/workers/hub/hub_fixture.h"

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

TEST_CASE("rows of a worker that finds no room at the service are handed over together again") {
  HubUnderTest h;
  h.open(1);
  h.open(2);
  h.row(1);
  h.row(2);
  for (int i = 0; i < 4; ++i) {
    Link& worker = h.attach();
    (void)worker.take<HandedBatch>();
    h.hub.no_room(worker, "others fill it");
    CHECK(worker.take<Refused>().code == "no_room");
  }
  CHECK(rows_of(h.attach().take<HandedBatch>()) == "1.0R 2.0R");
  CHECK(h.returned() == "1 taken 2 taken");
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

namespace {

// A hub whose slabs are not made before the test lets them.
class BusyHub : public HubUnderTest {
 public:
  BusyHub() {
    slab_threads.post(std::nullopt, [go = go_.get_future().share()] { go.wait(); });
  }
  ~BusyHub() { let_go(); }

  Link& say_hello() {
    Link& link = connect();
    hub.hello(link, {.name = "w"});
    run();
    return link;
  }
  void let_go() {
    if (!std::exchange(gone_, true)) go_.set_value();
  }
  // What was posted has been done, here and there.
  void finish() {
    let_go();
    await_slabs();
  }

 private:
  std::promise<void> go_;
  bool gone_ = false;
};

}  // namespace

TEST_CASE("while the slabs of one worker are made, or freed, others get their rows") {
  BusyHub h;
  h.let_go();
  Link& other = h.attach();
  Link& leaves = h.attach();
  std::promise<void> go;
  h.slab_threads.post(std::nullopt, [&] { go.get_future().wait(); });
  h.hub.receive(leaves, Bye{});
  (void)leaves.take<Bye>();
  Link& waits = h.say_hello();
  h.open(1);
  h.row(1);
  CHECK(rows_of(other.take<HandedBatch>()) == "1.0");
  CHECK(waits.idle());
  CHECK(h.slab_bytes.taken() == 2 * 3 * 4096);
  go.set_value();
  h.finish();
  (void)waits.take<Welcome>();
  CHECK(h.slab_bytes.taken() == 2 * 3 * 4096);
}

TEST_CASE("a worker that hangs up before its slabs are made gets no rows, and leaves no slabs") {
  BusyHub h;
  h.open(1);
  h.row(1);
  Link& worker = h.say_hello();
  SECTION("and its end was read") { h.hub.lost(worker, WorkerFailure::disconnect); }
  SECTION("and its end was not read yet") { worker.hung_up = true; }
  h.finish();
  h.finish();  // they were freed
  CHECK(h.slab_bytes.taken() == 0);
  CHECK(h.stats.workers.value() == 0);
  CHECK(failures(h, WorkerFailure::disconnect) == 0);
  CHECK(h.lines == std::vector<std::string>{"worker refused"});
  CHECK(h.returned().empty());
  CHECK(rows_of(h.attach().take<HandedBatch>()) == "1.0");
}

TEST_CASE("a worker that leaves before its slabs are made is told Bye") {
  BusyHub h;
  Link& worker = h.say_hello();
  h.hub.receive(worker, Heartbeat{});
  h.hub.receive(worker, Bye{});
  (void)worker.take<Bye>();
  CHECK(worker.ended);
  h.finish();
  CHECK(h.stats.workers.value() == 0);
}

TEST_CASE("a worker that gives something back before its Welcome is cut") {
  BusyHub h;
  Link& worker = h.say_hello();
  SECTION("a batch") { h.hub.receive(worker, Done{}); }
  SECTION("a second Hello") { h.hub.receive(worker, Hello{}); }
  CHECK(worker.take<Refused>().code == "protocol");
  CHECK(failures(h, WorkerFailure::protocol) == 1);
  h.finish();
  CHECK(h.stats.workers.value() == 0);
}

TEST_CASE("a service that stops before the slabs of a worker are made refuses it") {
  BusyHub h;
  Link& worker = h.say_hello();
  h.hub.dismiss();
  CHECK(worker.take<Refused>().code == "stopping");
  CHECK(worker.ended);
  h.finish();
  CHECK(h.slab_bytes.taken() == 0);
}

TEST_CASE("a batch that no watcher takes costs no copy") {
  HubUnderTest h(HubUnderTest::patient, {.use = DeviceRule::Use::host}, Element::f32);
  Link& worker = h.attach();
  h.open(1);
  const auto least_per_row = [&] {
    std::size_t least = 1000;
    for (int i = 0; i < 20; ++i) {
      const std::size_t before = allocations();
      h.row(1);
      least = std::min(least, allocations() - before);
      h.done(worker, worker.take<HandedBatch>().id);
    }
    return least;
  };
  const std::size_t unwatched = least_per_row();
  Link& watcher = h.watch();
  watcher.behind = std::size_t{4} << 20;
  CHECK(least_per_row() == unwatched);
  CHECK(h.stats.unwatched.value() == 20);
  watcher.behind = 0;
  CHECK(least_per_row() > unwatched);
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
