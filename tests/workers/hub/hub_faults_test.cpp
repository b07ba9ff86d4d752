// SPDX-License-Identifier: Apache-2.0
// Workers and watchers that violate the protocol, are silent, or disconnect.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <future>

#include "tests/support/allocations.h"
#include "tests/workers/hub/hub_fixture.h"

using namespace millrace;
using namespace millrace::test;

namespace {

constexpr LaneTimeouts short_silence{.silence = 5ms, .answer = 1h, .first_answer = 1h};

std::uint64_t failures(const HubUnderTest& h, WorkerFailure why) {
  return h.stats.failures[why].value();
}

}  // namespace

TEST_CASE("a worker that returns an unknown batch is disconnected") {
  HubUnderTest h;
  Link& worker = h.attach();
  h.done(worker, BatchId{7});
  CHECK(worker.receive<Refused>().code == "protocol");
  CHECK(failures(h, WorkerFailure::protocol) == 1);
  CHECK(h.stats.results[ResultStatus::late].value() == 0);
}

TEST_CASE("a worker that returns a batch that another worker has done is disconnected") {
  HubUnderTest h;
  Link& one = h.attach();
  Link& other = h.attach();
  h.open(1);
  h.open(2);
  h.row(1);
  h.row(2);
  const BatchId first = one.receive<HandedBatch>().id, second = other.receive<HandedBatch>().id;
  h.done(one, first);
  h.done(other, second);
  h.done(other, first);
  CHECK(other.receive<Refused>().code == "protocol");
  CHECK(failures(h, WorkerFailure::protocol) == 1);
  CHECK(h.stats.results[ResultStatus::late].value() == 0);
  CHECK(!one.ended);
}

TEST_CASE(
    "if the service has no memory for a worker's messages, the rows are handed over together "
    "again") {
  HubUnderTest h;
  h.open(1);
  h.open(2);
  h.row(1);
  h.row(2);
  for (int i = 0; i < 4; ++i) {
    Link& worker = h.attach();
    (void)worker.receive<HandedBatch>();
    h.hub.no_room(worker, "others fill it");
    CHECK(worker.receive<Refused>().code == "no_room");
  }
  CHECK(rows_of(h.attach().receive<HandedBatch>()) == "1.0R 2.0R");
  CHECK(h.returned() == "1 batched 2 batched");
}

TEST_CASE("messages of an ended connection are ignored") {
  HubUnderTest h;
  Link& worker = h.attach();
  h.hub.receive(worker, Hello{});
  (void)worker.receive<Refused>();
  h.hub.receive(worker, Hello{});
  h.hub.receive(worker, Bye{});
  h.done(worker, BatchId{7});
  h.hub.lost(worker, WorkerFailure::disconnect);
  CHECK(worker.idle());
  CHECK(failures(h, WorkerFailure::protocol) == 1);
  CHECK(failures(h, WorkerFailure::disconnect) == 0);
}

TEST_CASE("a worker that sent Bye and disconnects while it has a stream is lost") {
  HubUnderTest h;
  h.open(1);
  h.row(1);
  Link& worker = h.attach();
  h.done(worker, worker.receive<HandedBatch>().id);
  h.hub.receive(worker, Bye{});
  CHECK(worker.idle());  // no other worker has a free slot for its stream
  h.hub.lost(worker, WorkerFailure::disconnect);
  CHECK(failures(h, WorkerFailure::disconnect) == 1);
  Link& next = h.attach();
  h.row(1);
  CHECK(rows_of(next.receive<HandedBatch>()) == "1.1R");
}

TEST_CASE("a worker that sent Bye and received Bye may disconnect") {
  HubUnderTest h;
  Link& worker = h.attach();
  h.hub.receive(worker, Bye{});
  (void)worker.receive<Bye>();
  h.hub.lost(worker, WorkerFailure::disconnect);
  CHECK(failures(h, WorkerFailure::disconnect) == 0);
}

TEST_CASE("only the first of several Bye messages of a worker counts") {
  HubUnderTest h;
  h.open(1);
  h.row(1);
  Link& worker = h.attach();
  h.lines.clear();
  for (int i = 0; i < 3; ++i) h.hub.receive(worker, Bye{});
  CHECK(h.lines == std::vector<std::string>{"worker leaves"});
  CHECK(!worker.ended);
}

TEST_CASE("a watcher that sends a message of workers is disconnected") {
  HubUnderTest h;
  Link& watcher = h.watch();
  SECTION("a batch") { h.hub.receive(watcher, Done{}); }
  SECTION("a second Hello") { h.hub.receive(watcher, Hello{}); }
  CHECK(watcher.receive<Refused>().code == "protocol");
  CHECK(watcher.ended);
  CHECK(failures(h, WorkerFailure::protocol) == 1);
  h.hub.lost(watcher, WorkerFailure::disconnect);
  h.attach();
  h.open(1);
  h.row(1);
  CHECK(watcher.idle());
}

TEST_CASE("a watcher that sends Bye receives Bye") {
  HubUnderTest h;
  Link& watcher = h.watch();
  h.hub.receive(watcher, Heartbeat{});
  CHECK(watcher.idle());
  h.hub.receive(watcher, Bye{});
  (void)watcher.receive<Bye>();
  CHECK(watcher.ended);
}

TEST_CASE("a silent watcher is disconnected, which does not count as a failure") {
  HubUnderTest h(short_silence);
  Link& watcher = h.watch();
  h.run_until([&] { return watcher.ended; });
  CHECK(watcher.receive<Refused>().code == "timeout");
  CHECK(failures(h, WorkerFailure::timeout) == 0);
}

TEST_CASE("heartbeats are not queued for a worker that does not read") {
  HubUnderTest h;
  Link& reads = h.attach();
  Link& sleeps = h.attach();
  Link& watcher = h.watch();
  sleeps.behind = watcher.behind = 1;
  h.run_until([&] { return reads.beats > 0; });
  CHECK(sleeps.beats == 0);
  CHECK(watcher.beats == 0);
}

TEST_CASE("the slabs of the workers of all pipelines have one budget") {
  HubUnderTest h;
  h.slab_bytes.set_limit(8 * 4096);
  LaneStats stats;
  Hub other(h.io(), h.settings(), {h.devices, h.slab_bytes, h.slab_threads}, stats);
  const auto answered = [&]() -> Link& {
    Link& link = h.connect();
    other.hello(link, {.name = "w", .credits = 1});
    h.run_until([&] { return !link.idle(); });
    return link;
  };
  Link& worker = h.attach(6);
  CHECK(answered().receive<Refused>().code == "no_room");
  h.hub.lost(worker, WorkerFailure::disconnect);
  worker.exit();
  h.run_until([&] { return h.slab_bytes.taken() == 0; });
  (void)answered().receive<Welcome>();
}

TEST_CASE("a worker whose process cannot be watched is refused, and its slabs are freed") {
  HubUnderTest h;
  Link& worker = h.connect();
  worker.out_of_descriptors = true;
  h.hub.hello(worker, {.name = "w"});
  CHECK(worker.receive<Refused>().code == "internal");
  CHECK(worker.ended);
  CHECK(h.slab_bytes.taken() == 0);
  h.attach();
}

TEST_CASE("a trainer is refused by a pipeline of live streams") {
  HubUnderTest h;
  Link& trainer = h.connect({.name = "t", .trainer = worker_protocol::TrainerHello{}});
  const Refused refused = trainer.receive<Refused>();
  CHECK(refused.code == "pipeline");
  CHECK(refused.message.find("no plan for trainers") != std::string::npos);
  CHECK(trainer.ended);
  CHECK(h.slab_bytes.taken() == 0);
}

namespace {

// A hub whose slabs are not made before the test allows it.
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
  // Waits until all posted jobs have run, on the slab thread and on this one.
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
  (void)leaves.receive<Bye>();
  Link& waits = h.say_hello();
  h.open(1);
  h.row(1);
  CHECK(rows_of(other.receive<HandedBatch>()) == "1.0");
  CHECK(waits.idle());
  CHECK(h.slab_bytes.taken() == 2 * 3 * 4096);
  go.set_value();
  h.finish();
  (void)waits.receive<Welcome>();
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
  h.finish();  // the slabs were freed
  CHECK(h.slab_bytes.taken() == 0);
  CHECK(h.stats.workers.value() == 0);
  CHECK(failures(h, WorkerFailure::disconnect) == 0);
  CHECK(h.lines == std::vector<std::string>{"worker refused"});
  CHECK(h.returned().empty());
  CHECK(rows_of(h.attach().receive<HandedBatch>()) == "1.0");
}

TEST_CASE("a worker that sends Bye before its slabs are made receives Bye") {
  BusyHub h;
  Link& worker = h.say_hello();
  h.hub.receive(worker, Heartbeat{});
  h.hub.receive(worker, Bye{});
  (void)worker.receive<Bye>();
  CHECK(worker.ended);
  h.finish();
  CHECK(h.stats.workers.value() == 0);
}

TEST_CASE("a worker that sends Done before its Welcome is disconnected") {
  BusyHub h;
  Link& worker = h.say_hello();
  SECTION("a batch") { h.hub.receive(worker, Done{}); }
  SECTION("a second Hello") { h.hub.receive(worker, Hello{}); }
  CHECK(worker.receive<Refused>().code == "protocol");
  CHECK(failures(h, WorkerFailure::protocol) == 1);
  h.finish();
  CHECK(h.stats.workers.value() == 0);
}

TEST_CASE("a service that stops before the slabs of a worker are made refuses it") {
  BusyHub h;
  Link& worker = h.say_hello();
  h.hub.stop();
  CHECK(worker.receive<Refused>().code == "stopping");
  CHECK(worker.ended);
  h.finish();
  CHECK(h.slab_bytes.taken() == 0);
}

TEST_CASE("a batch that no watcher accepts is not copied") {
  HubUnderTest h(HubUnderTest::long_timeouts, {.use = DeviceRule::Use::host}, Element::f32);
  Link& worker = h.attach();
  h.open(1);
  const auto least_per_row = [&] {
    std::size_t least = 1000;
    for (int i = 0; i < 20; ++i) {
      const std::size_t before = allocations();
      h.row(1);
      least = std::min(least, allocations() - before);
      h.done(worker, worker.receive<HandedBatch>().id);
    }
    return least;
  };
  const std::size_t unwatched = least_per_row();
  Link& watcher = h.watch();
  watcher.behind = std::size_t{4} << 20;
  CHECK(least_per_row() == unwatched);
  CHECK(h.stats.watcher_misses.value() == 20);
  watcher.behind = 0;
  CHECK(least_per_row() > unwatched);
}

TEST_CASE("workers and watchers that send Hello to a stopped hub are refused") {
  HubUnderTest h;
  h.hub.stop();
  for (const bool watch : {false, true}) {
    Link& late = h.connect({.name = "w", .watch = watch});
    CHECK(late.receive<Refused>().code == "stopping");
    CHECK(late.ended);
  }
  CHECK(h.slab_bytes.taken() == 0);
}
