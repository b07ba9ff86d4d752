// SPDX-License-Identifier: Apache-2.0
#include "workers/hub/server.h"

#include <poll.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <catch2/catch.hpp>

#include "tests/support/allocations.h"
#include "tests/workers/hub/service_fixture.h"

using namespace millrace;
using namespace millrace::test;

TEST_CASE("an invalid message disconnects its worker, with a reason, and is counted once") {
  HubService service;
  RawWorker worker(service), other(service);
  worker.attach();
  other.attach();
  SECTION("garbage") { worker.send_message({1, 2, 3, 4, 5, 6, 7, 8}); }
  SECTION("nothing in it") { worker.send_message({}); }
  SECTION("a length over the limit") { worker.send_bytes({1, 0, 0, 4}); }
  SECTION("the longest length") { worker.send_bytes({255, 255, 255, 255}); }
  SECTION("a service's message") { worker.send(Welcome{}); }
  SECTION("a descriptor") { worker.send(Heartbeat{}, STDIN_FILENO); }
  SECTION("a second Hello") { worker.send(Hello{.name = "w"}); }
  SECTION("an unknown batch") { worker.send(Done{}); }
  CHECK(worker.receive<Refused>().code == "protocol");
  CHECK(worker.sees_end());
  CHECK(service.failures(WorkerFailure::protocol) == 1);
  CHECK(service.failures(WorkerFailure::disconnect) == 0);
  CHECK(service.stats.workers.value() == 1);
}

TEMPLATE_TEST_CASE("a worker that hangs up is lost, and another gets its rows", "", RawWorker,
                   TcpWorker) {
  HubService service;
  service.open(1);
  service.row(1);
  {
    TestType worker(service);
    CHECK(rows_of(worker.attach().template receive<HandedBatch>()) == "1.0");
    SECTION("between two messages") {}
    SECTION("in the middle of one") { worker.send_bytes({100, 0, 0, 0, 1}); }
    SECTION("with garbage on the way") { worker.send(Heartbeat{}).send_bytes({100}); }
  }
  TestType next(service);
  CHECK(rows_of(next.attach().template receive<HandedBatch>()) == "1.0R");
  CHECK(service.failures(WorkerFailure::disconnect) == 1);
  CHECK(service.failures(WorkerFailure::protocol) == 0);
}

TEMPLATE_TEST_CASE("answers that a worker sends before it hangs up count", "", RawWorker,
                   TcpWorker) {
  HubService service;
  service.open(1);
  service.row(1);
  {
    TestType worker(service);
    const BatchId batch = worker.attach().template receive<HandedBatch>().id;
    worker.send(Done{
        .batch = batch, .answers = texts({"yes"}), .mark_answers = {}, .taken = {}, .done = {}});
  }
  service.run_until([&] { return service.back.size() == 2; });
  CHECK(service.returned() == "1 batched 1.0=yes");
}

TEST_CASE("a worker that sends without a pause does not block its thread") {
  HubService service;
  RawWorker worker(service);
  worker.attach();
  Encoder encoder;
  std::vector<std::uint8_t> flood;
  for (int i = 0; i <= 1000; ++i) {
    const Bytes message = i < 1000 ? encoder.encode(Heartbeat{}) : encoder.encode(Bye{});
    flood.insert(flood.end(), {static_cast<std::uint8_t>(message.size()), 0, 0, 0});
    for (const std::byte byte : message) flood.push_back(static_cast<std::uint8_t>(byte));
  }
  worker.send_bytes(flood);
  int turns = 0;  // turns of another coroutine meanwhile
  std::function<void()> take_turn = [&] {
    ++turns;
    if (!service.logged("worker leaves")) net::post(service.io(), take_turn);
  };
  net::post(service.io(), take_turn);
  service.run_until([&] { return service.logged("worker leaves"); });
  CHECK(turns >= 1000 / 64);
  (void)worker.receive<Bye>();
}

namespace {

// A worker with `credits`, over a connection with a small send queue.
RawWorker with_small_connection(HubService& service, std::uint32_t credits,
                                std::size_t max_outgoing = 10'000) {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  const int least = 0;
  REQUIRE(::setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &least, sizeof least) == 0);
  FramedSocket service_end(FileDescriptor(ends[0]), {.max_outgoing = max_outgoing});
  spawn(service.io().get_executor(),
        serve_worker(std::move(service_end), Hello{.name = "w", .credits = credits}, service.hub));
  service.run_until([&] { return service.stats.workers.value() == 1; });
  return RawWorker(service, FileDescriptor(ends[1]));
}

}  // namespace

TEST_CASE(
    "a worker that never reads is disconnected when its queue is full, and another gets its rows") {
  HubService service;
  const RawWorker worker = with_small_connection(service, 200);
  service.open(1);
  int rows = 0;
  for (; rows < 200 && service.failures(WorkerFailure::timeout) == 0; ++rows) service.row(1);
  CHECK(rows > 10);
  CHECK(rows < 150);
  CHECK(service.failures(WorkerFailure::timeout) == 1);
  CHECK(service.failures(WorkerFailure::disconnect) == 0);
  CHECK(service.stats.workers.value() == 0);
  pollfd end{worker.handle(), POLLRDHUP, 0};
  CHECK(::poll(&end, 1, 0) == 1);
  CHECK(rows_of(RawWorker(service).attach().receive<HandedBatch>()) == "1.0R");
}

TEST_CASE("only the worker for whose messages there is no memory is disconnected") {
  HubService service;
  const RawWorker worker = with_small_connection(service, 200, std::size_t{1} << 20);
  RawWorker other(service);
  other.attach();
  service.open(1);
  service.back.reserve(1000);
  {
    const Scarcity scarcity(20'000);  // the hub needs less for a row
    for (int row = 0; row < 200 && service.failures(WorkerFailure::timeout) == 0; ++row)
      service.row(1);
  }
  CHECK(service.failures(WorkerFailure::timeout) == 1);
  CHECK(rows_of(other.receive<HandedBatch>()) == "1.0R");
}

TEST_CASE("a worker that is disconnected with unread input can still read the reason") {
  HubService service;
  RawWorker worker = with_small_connection(service, 20);
  service.open(1);
  for (int row = 0; row < 20; ++row) service.row(1);
  worker.send(
      Done{.batch = BatchId{99}, .answers = {}, .mark_answers = {}, .taken = {}, .done = {}});
  service.run_until([&] { return service.failures(WorkerFailure::protocol) == 1; });
  (void)worker.receive<Welcome>();
  for (int batch = 0; batch < 20; ++batch) (void)worker.receive<HandedBatch>();
  CHECK(worker.receive<Refused>().code == "protocol");
  CHECK(worker.sees_end());
}

TEMPLATE_TEST_CASE("a worker of a hub that stops receives Bye, and then the end", "", RawWorker,
                   TcpWorker) {
  HubService service;
  TestType worker(service), watcher(service);
  worker.attach();
  watcher.send(Hello{.name = "watcher", .credits = 0, .watch = true});
  (void)watcher.template receive<Welcome>();
  service.hub.stop();
  for (TestType* end : {&worker, &watcher}) {
    (void)end->template receive<Bye>();
    CHECK(end->sees_end());
  }
  TestType late(service);
  late.send(Hello{.name = "w"});
  CHECK(late.template receive<Refused>().code == "stopping");
  CHECK(late.sees_end());
}
