// SPDX-License-Identifier: Apache-2.0
// Workers over TCP, at the service's end. session_test.cpp has the tests for all connections.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/workers/hub/service_fixture.h"

using namespace millrace;
using namespace millrace::test;

namespace {

Done done(BatchId batch, std::vector<Answer> answers) {
  return {
      .batch = batch, .answers = std::move(answers), .mark_answers = {}, .taken = {}, .done = {}};
}

// The header of a message of 1 MiB, and the first bytes of the message.
std::vector<std::uint8_t> part_of_message(std::size_t bytes) {
  std::vector<std::uint8_t> part{0, 0, 16, 0};
  part.resize(part.size() + bytes);
  return part;
}

std::uint64_t refused(const HubService& service, WorkerRefusal reason) {
  return service.tcp.stats().refused[reason].value();
}

}  // namespace

TEST_CASE("a worker over TCP receives a Welcome without slabs, and then its tensors") {
  HubService service;
  TcpWorker worker(service);
  worker.send(Hello{.name = "w", .credits = 2, .device = "tpu"});
  const auto welcome = worker.receive<Welcome>();
  CHECK(welcome.slabs == 0);
  CHECK(welcome.slots == 2);
  CHECK_FALSE(worker.slabs());
  service.open(1, "mic", R"({"language":"de"})");
  service.row(1);
  const auto batch = worker.receive<HandedBatch>();
  CHECK(rows_of(batch) == "1.0");
  CHECK(values(batch.tensor, 1) == std::vector<int>{100, 101, 102, 0});
  CHECK(batch.opened.at(0).options == R"({"language":"de"})");
  worker.send(done(batch.id, texts({"yes"})));
  service.run_until([&] { return service.back.size() == 2; });
  CHECK(service.returned() == "1 batched 1.0=yes");
}

TEST_CASE("slabs and messages of a worker over TCP count until it is lost") {
  HubService service;
  {
    TcpWorker worker(service);
    worker.attach();
    CHECK(service.slab_bytes.taken() == 5 * 4096);
  }
  service.run_until([&] { return service.failures(WorkerFailure::disconnect) == 1; });
  service.await_slabs();
  CHECK(service.slab_bytes.taken() == 0);
}

TEST_CASE("a TCP connection that does not begin with an acceptable Hello is refused and counted") {
  HubService service;
  TcpWorker worker(service);
  const char* code = "protocol";
  SECTION("an unknown pipeline") {
    worker.send(Hello{.pipeline = "vad", .name = "w"});
    code = "pipeline";
  }
  SECTION("another version") {
    worker.send(Hello{.version = 7, .name = "w"});
    code = "version";
  }
  SECTION("HTTP") { worker.send_bytes({'G', 'E', 'T', ' ', '/', ' ', 'H', 'T', 'T', 'P'}); }
  SECTION("TLS") { worker.send_bytes({22, 3, 1, 2, 0, 1, 0, 1}); }
  SECTION("the greeting of ZeroMQ") {
    std::vector<std::uint8_t> greeting{255, 0, 0, 0, 0, 0, 0, 0, 1, 127, 3};
    greeting.resize(4 + 255);
    worker.send_bytes(greeting);
  }
  SECTION("a length of more than 64 KiB") { worker.send_bytes({1, 0, 1, 0}); }
  SECTION("another message") { worker.send(Heartbeat{}); }
  CHECK(worker.receive<Refused>().code == code);
  CHECK(worker.sees_end());
  CHECK(refused(service, WorkerRefusal::handshake) == 1);
  CHECK(service.lines == std::vector<std::string>{"worker refused"});
  TcpWorker(service).attach();
}

TEST_CASE("a TCP connection that ends without a byte is not a refused worker") {
  HubService service;
  { const TcpWorker check(service); }
  { TcpWorker(service).send_bytes({100}); }
  service.run_until([&] { return !service.lines.empty(); });
  service.run_until([&] { return service.budgets.connections.taken() == 0; });
  CHECK(refused(service, WorkerRefusal::handshake) == 1);
  CHECK(service.lines == std::vector<std::string>{"worker refused"});
}

TEST_CASE("at most 1024 TCP connections are open at a time") {
  HubService service;
  std::vector<TcpWorker> workers;
  while (workers.size() < max_remote_connections) {
    workers.emplace_back(service);
    service.run();
  }
  TcpWorker(service).sees_end();
  TcpWorker(service).sees_end();
  CHECK(refused(service, WorkerRefusal::limit_global) == 2);
  CHECK(service.lines == std::vector<std::string>{"worker refused"});
  workers.clear();
  service.run_until([&] { return service.budgets.connections.taken() == 0; });
  TcpWorker(service).attach();
}

TEST_CASE("a worker over TCP can read the reason of its end, also if it still sends") {
  HubService service;
  TcpWorker worker(service);
  worker.attach();
  worker.send(Done{});
  for (int i = 0; i < 1000; ++i) worker.send(Heartbeat{});
  CHECK(worker.receive<Refused>().code == "protocol");
  CHECK(worker.sees_end());
  CHECK(service.failures(WorkerFailure::protocol) == 1);
}

TEST_CASE("a TCP connection whose worker was refused is closed though the worker stays") {
  HubService service;
  TcpWorker worker(service);
  worker.attach();
  worker.send(Hello{.name = "a second one"});
  (void)worker.receive<Refused>();
  CHECK(service.budgets.connections.taken() == 1);
  service.run_until([&] { return service.budgets.connections.taken() == 0; });
}

TEST_CASE("a silent worker over TCP is disconnected, and another gets its rows") {
  HubService service({.silence = 5ms, .answer = 1h, .first_answer = 1h});
  service.open(1);
  service.row(1);
  TcpWorker worker(service);
  (void)worker.attach().receive<HandedBatch>();
  CHECK(worker.receive<Refused>().code == "timeout");
  CHECK(rows_of(TcpWorker(service).attach().receive<HandedBatch>()) == "1.0R");
}

TEST_CASE("a watcher over TCP gets copies of the rows of a local worker") {
  HubService service;
  TcpWorker watcher(service);
  watcher.send(Hello{.name = "watcher", .credits = 0, .watch = true});
  (void)watcher.receive<Welcome>();
  RawWorker worker(service);
  worker.attach();
  service.open(1);
  service.row(1);
  CHECK(values(watcher.receive<HandedBatch>().tensor, 1) == std::vector<int>{100, 101, 102, 0});
}

TEST_CASE("workers over TCP get the rows of their own pipelines") {
  HubUnderTest other;
  HubService service;
  service.other = {&other.hub, &other.io()};
  const auto run_both = [&](const auto& happened) {
    service.run_until([&] { return other.run(), happened(); });
  };
  TcpWorker worker(service), another(service);
  worker.attach();
  another.send(Hello{.pipeline = "other", .name = "w"});
  run_both([&] { return other.stats.workers.value() == 1; });
  CHECK(service.stats.workers.value() == 1);
  (void)another.receive<Welcome>();
  service.open(1);
  other.open(2);
  service.row(1);
  other.row(2);
  CHECK(rows_of(worker.receive<HandedBatch>()) == "1.0");
  CHECK(rows_of(another.receive<HandedBatch>()) == "2.0");
  other.hub.stop();
  other.run();
}

TEST_CASE(
    "received bytes of workers over TCP have one limit, and a worker beyond it is disconnected") {
  HubService service;
  TcpWorker loud(service), cut(service), quiet(service);
  quiet.attach();  // the first: it gets the stream
  loud.attach();
  cut.attach();
  const auto unread = [&] { return service.budgets.unread.taken(); };
  const auto send = [&](TcpWorker& worker, std::size_t bytes) {
    worker.send_bytes(part_of_message(bytes));
    for (int i = 0; i < 100; ++i) service.run();
  };
  send(loud, reserved_unread_bytes / 2);
  CHECK(unread() == 0);  // within the connection's reserved bytes
  loud.send_bytes(std::vector<std::uint8_t>(reserved_unread_bytes));
  service.run_until([&] { return unread() >= reserved_unread_bytes; });
  cut.send_bytes(part_of_message(reserved_unread_bytes));
  service.run_until([&] { return unread() > reserved_unread_bytes; });
  service.budgets.unread.set_limit(unread());
  cut.send_bytes(std::vector<std::uint8_t>(reserved_unread_bytes));
  CHECK(cut.receive<Refused>().code == "no_room");
  CHECK(service.failures(WorkerFailure::timeout) == 1);
  CHECK(service.failures(WorkerFailure::protocol) == 0);
  service.open(1);
  service.row(1);
  quiet.send(done(quiet.receive<HandedBatch>().id, texts({"yes"})));
  service.run_until([&] { return service.back.size() == 2; });
}

TEST_CASE("the memory of a long message is given back when the message is read") {
  HubService service;
  TcpWorker worker(service);
  worker.attach();
  service.open(1);
  service.row(1);
  const BatchId batch = worker.receive<HandedBatch>().id;
  worker.send(done(batch, {{Answer::Kind::text, std::string(900'000, 'x')}}));
  service.run_until([&] { return service.back.size() == 2; });
  service.run_until([&] { return service.budgets.unread.taken() == 0; });
}
