// SPDX-License-Identifier: Apache-2.0
#include "workers/hub/server.h"

#include <poll.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <catch2/catch.hpp>

#include "tests/support/allocations.h"
#include "tests/workers/hub/door_fixture.h"

using namespace millrace;
using namespace millrace::test;

TEST_CASE("batches go out and come back over the socket") {
  Door door;
  door.open(1);
  door.row(1);
  RawWorker worker(door);
  worker.attach();
  const auto batch = worker.take<HandedBatch>();
  CHECK(rows_of(batch) == "1.0");
  worker.send(Done{
      .batch = batch.id, .answers = texts({"yes"}), .mark_answers = {}, .taken = {}, .done = {}});
  door.run_until([&] { return door.back.size() == 2; });
  CHECK(door.returned() == "1 taken 1.0=yes");
}

TEST_CASE("what is no message of a worker cuts it, with a reason, and is counted once") {
  Door door;
  RawWorker worker(door), other(door);
  worker.attach();
  other.attach();
  SECTION("garbage") { worker.send_message({1, 2, 3, 4, 5, 6, 7, 8}); }
  SECTION("nothing in it") { worker.send_message({}); }
  SECTION("a length over the limit") { worker.send_bytes({1, 0, 0, 4}); }
  SECTION("the longest length") { worker.send_bytes({255, 255, 255, 255}); }
  SECTION("a service's message") { worker.send(Welcome{}); }
  SECTION("a descriptor") { worker.send(Heartbeat{}, STDIN_FILENO); }
  SECTION("a second Hello") { worker.send(Hello{.name = "w"}); }
  SECTION("a batch that nobody has") { worker.send(Done{}); }
  CHECK(worker.take<Refused>().code == "protocol");
  CHECK(worker.sees_end());
  CHECK(door.failures(WorkerFailure::protocol) == 1);
  CHECK(door.failures(WorkerFailure::disconnect) == 0);
  CHECK(door.stats.workers.value() == 1);
}

TEST_CASE("a worker that hangs up is lost, and another gets its rows") {
  Door door;
  door.open(1);
  door.row(1);
  {
    RawWorker worker(door);
    CHECK(rows_of(worker.attach().take<HandedBatch>()) == "1.0");
    SECTION("between two messages") {}
    SECTION("in the middle of one") { worker.send_bytes({100, 0, 0, 0, 1}); }
    SECTION("with garbage on the way") { worker.send(Heartbeat{}).send_bytes({100}); }
  }
  RawWorker next(door);
  CHECK(rows_of(next.attach().take<HandedBatch>()) == "1.0R");
  CHECK(door.failures(WorkerFailure::disconnect) == 1);
  CHECK(door.failures(WorkerFailure::protocol) == 0);
}

TEST_CASE("answers of a worker that hangs up behind them count") {
  Door door;
  door.open(1);
  door.row(1);
  {
    RawWorker worker(door);
    const BatchId batch = worker.attach().take<HandedBatch>().id;
    worker.send(Done{
        .batch = batch, .answers = texts({"yes"}), .mark_answers = {}, .taken = {}, .done = {}});
  }
  door.run_until([&] { return door.back.size() == 2; });
  CHECK(door.returned() == "1 taken 1.0=yes");
}

TEST_CASE("a worker that sends without end does not hold up its thread") {
  Door door;
  RawWorker worker(door);
  worker.attach();
  Encoder encoder;
  std::vector<std::uint8_t> flood;
  for (int i = 0; i <= 1000; ++i) {
    const Bytes message = i < 1000 ? encoder.encode(Heartbeat{}) : encoder.encode(Bye{});
    flood.insert(flood.end(), {static_cast<std::uint8_t>(message.size()), 0, 0, 0});
    for (const std::byte byte : message) flood.push_back(static_cast<std::uint8_t>(byte));
  }
  worker.send_bytes(flood);
  int turns = 0;  // that another had meanwhile
  std::function<void()> take_turn = [&] {
    ++turns;
    if (!door.logged("worker leaves")) net::post(door.io(), take_turn);
  };
  net::post(door.io(), take_turn);
  door.run_until([&] { return door.logged("worker leaves"); });
  CHECK(turns >= 1000 / 64);
  (void)worker.take<Bye>();
}

namespace {

// A worker with a connection that holds little, which the service serves for `credits` batches.
RawWorker with_small_connection(Door& door, std::uint32_t credits,
                                std::size_t max_outgoing = 10'000) {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  const int least = 0;
  REQUIRE(::setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &least, sizeof least) == 0);
  FramedSocket service(FileDescriptor(ends[0]), {.max_outgoing = max_outgoing});
  spawn(door.io().get_executor(),
        serve_worker(std::move(service), Hello{.name = "w", .credits = credits}, door.hub));
  door.run_until([&] { return door.stats.workers.value() == 1; });
  return RawWorker(door, FileDescriptor(ends[1]));
}

}  // namespace

TEST_CASE("a worker that never reads is cut when too much waits, and another gets its rows") {
  Door door;
  const RawWorker worker = with_small_connection(door, 200);
  door.open(1);
  int rows = 0;
  for (; rows < 200 && door.failures(WorkerFailure::timeout) == 0; ++rows) door.row(1);
  CHECK(rows > 10);
  CHECK(rows < 150);
  CHECK(door.failures(WorkerFailure::timeout) == 1);
  CHECK(door.failures(WorkerFailure::disconnect) == 0);
  CHECK(door.stats.workers.value() == 0);
  pollfd end{worker.handle(), POLLRDHUP, 0};
  CHECK(::poll(&end, 1, 0) == 1);
  CHECK(rows_of(RawWorker(door).attach().take<HandedBatch>()) == "1.0R");
}

TEST_CASE("a worker that there is no memory to send to is cut, and no other") {
  Door door;
  const RawWorker worker = with_small_connection(door, 200, std::size_t{1} << 20);
  RawWorker other(door);
  other.attach();
  door.open(1);
  door.back.reserve(1000);
  {
    const Scarcity scarcity(20'000);  // what the hub needs for a row is less
    for (int row = 0; row < 200 && door.failures(WorkerFailure::timeout) == 0; ++row) door.row(1);
  }
  CHECK(door.failures(WorkerFailure::timeout) == 1);
  CHECK(rows_of(other.take<HandedBatch>()) == "1.0R");
}

TEST_CASE("a worker that is cut while much waits to be read can still read why") {
  Door door;
  RawWorker worker = with_small_connection(door, 20);
  door.open(1);
  for (int row = 0; row < 20; ++row) door.row(1);
  worker.send(
      Done{.batch = BatchId{99}, .answers = {}, .mark_answers = {}, .taken = {}, .done = {}});
  door.run_until([&] { return door.failures(WorkerFailure::protocol) == 1; });
  (void)worker.take<Welcome>();
  for (int batch = 0; batch < 20; ++batch) (void)worker.take<HandedBatch>();
  CHECK(worker.take<Refused>().code == "protocol");
  CHECK(worker.sees_end());
}

TEST_CASE("a worker that is dismissed hears Bye, and then the end") {
  Door door;
  RawWorker worker(door), watcher(door);
  worker.attach();
  watcher.send(Hello{.name = "watcher", .credits = 0, .watch = true});
  (void)watcher.take<Welcome>();
  door.hub.dismiss();
  for (RawWorker* end : {&worker, &watcher}) {
    (void)end->take<Bye>();
    CHECK(end->sees_end());
  }
  RawWorker late(door);
  late.send(Hello{.name = "w"});
  CHECK(late.take<Refused>().code == "stopping");
  CHECK(late.sees_end());
}
