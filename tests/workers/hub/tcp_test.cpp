// SPDX-License-Identifier: Apache-2.0
// Workers over TCP, at the service's end. worker_session_test has what holds for all connections.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/workers/hub/door_fixture.h"

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

std::uint64_t refused(const Door& door, WorkerRefusal reason) {
  return door.tcp.stats().refused[reason].value();
}

}  // namespace

TEST_CASE("a worker over TCP is welcomed without slabs, and gets its tensors") {
  Door door;
  TcpWorker worker(door);
  worker.send(Hello{.name = "w", .credits = 2, .device = "tpu"});
  const auto welcome = worker.take<Welcome>();
  CHECK(welcome.slabs == 0);
  CHECK(welcome.slots == 2);
  CHECK_FALSE(worker.slabs());
  door.open(1, "mic", R"({"language":"de"})");
  door.row(1);
  const auto batch = worker.take<HandedBatch>();
  CHECK(rows_of(batch) == "1.0");
  CHECK(values(batch.tensor, 1) == std::vector<int>{100, 101, 102, 0});
  CHECK(batch.opened.at(0).options == R"({"language":"de"})");
  worker.send(done(batch.id, texts({"yes"})));
  door.run_until([&] { return door.back.size() == 2; });
  CHECK(door.returned() == "1 taken 1.0=yes");
}

TEST_CASE("slabs and messages of a worker over TCP count until it is lost") {
  Door door;
  {
    TcpWorker worker(door);
    worker.attach();
    CHECK(door.slab_bytes.taken() == 5 * 4096);
  }
  door.run_until([&] { return door.failures(WorkerFailure::disconnect) == 1; });
  door.await_slabs();
  CHECK(door.slab_bytes.taken() == 0);
}

TEST_CASE("if a worker over TCP hangs up, another worker gets its rows") {
  Door door;
  door.open(1);
  door.row(1);
  {
    TcpWorker worker(door);
    CHECK(rows_of(worker.attach().take<HandedBatch>()) == "1.0");
  }
  TcpWorker next(door);
  CHECK(rows_of(next.attach().take<HandedBatch>()) == "1.0R");
  CHECK(door.failures(WorkerFailure::disconnect) == 1);
}

TEST_CASE("answers that came before the end of a TCP connection count") {
  Door door;
  door.open(1);
  door.row(1);
  {
    TcpWorker worker(door);
    const BatchId batch = worker.attach().take<HandedBatch>().id;
    worker.send(done(batch, texts({"yes"})));
  }
  door.run_until([&] { return door.back.size() == 2; });
  CHECK(door.returned() == "1 taken 1.0=yes");
}

TEST_CASE("a TCP connection that does not begin with an acceptable Hello is refused and counted") {
  Door door;
  TcpWorker worker(door);
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
  CHECK(worker.take<Refused>().code == code);
  CHECK(worker.sees_end());
  CHECK(refused(door, WorkerRefusal::handshake) == 1);
  CHECK(door.lines == std::vector<std::string>{"worker refused"});
  TcpWorker(door).attach();
}

TEST_CASE("a TCP connection that sends nothing is ended after the handshake time") {
  Door door(HubUnderTest::patient, 5ms);
  TcpWorker silent(door), half(door);
  half.send_bytes({100, 0, 0, 0, 1});
  CHECK(silent.take<Refused>().code == "protocol");
  CHECK(silent.sees_end());
  CHECK(half.take<Refused>().code == "protocol");
  CHECK(refused(door, WorkerRefusal::handshake) == 2);
}

TEST_CASE("at most 1024 TCP connections are open at a time") {
  Door door;
  std::vector<TcpWorker> workers;
  while (workers.size() < max_remote_connections) {
    workers.emplace_back(door);
    door.run();
  }
  TcpWorker(door).sees_end();
  TcpWorker(door).sees_end();
  CHECK(refused(door, WorkerRefusal::limit_global) == 2);
  CHECK(door.lines == std::vector<std::string>{"worker refused"});
  workers.clear();
  door.run_until([&] { return door.budgets.connections.taken() == 0; });
  TcpWorker(door).attach();
}

TEST_CASE("a failure over the Hello of one TCP connection ends that one") {
  Door door;
  TcpWorker worker(door);
  worker.send(Hello{.pipeline = "broken", .name = "w"});
  CHECK(worker.sees_end());
  CHECK(door.lines == std::vector<std::string>{"worker refused"});
  TcpWorker(door).attach();
}

TEST_CASE("a worker over TCP can read why it was cut, whatever it still sends") {
  Door door;
  TcpWorker worker(door);
  worker.attach();
  worker.send(Done{});
  for (int i = 0; i < 1000; ++i) worker.send(Heartbeat{});
  CHECK(worker.take<Refused>().code == "protocol");
  CHECK(worker.sees_end());
  CHECK(door.failures(WorkerFailure::protocol) == 1);
}

TEST_CASE("a TCP connection whose worker was refused is closed though the worker stays") {
  Door door;
  TcpWorker worker(door);
  worker.attach();
  worker.send(Hello{.name = "a second one"});
  (void)worker.take<Refused>();
  CHECK(door.budgets.connections.taken() == 1);
  door.run_until([&] { return door.budgets.connections.taken() == 0; });
}

TEST_CASE("a silent worker over TCP is cut, and another gets its rows") {
  Door door({.silence = 1s, .answer = 1h, .first_answer = 1h});
  door.open(1);
  door.row(1);
  TcpWorker worker(door);
  (void)worker.attach().take<HandedBatch>();
  CHECK(worker.take<Refused>().code == "timeout");
  CHECK(rows_of(TcpWorker(door).attach().take<HandedBatch>()) == "1.0R");
}

TEST_CASE("a worker over TCP that leaves gets Bye") {
  Door door;
  TcpWorker worker(door), stays(door), watcher(door);
  worker.attach().send(Bye{});
  (void)worker.take<Bye>();
  stays.attach();
  watcher.send(Hello{.name = "watcher", .credits = 0, .watch = true});
  (void)watcher.take<Welcome>();
  door.hub.dismiss();
  (void)stays.take<Bye>();
  (void)watcher.take<Bye>();
  TcpWorker late(door);
  CHECK(late.send(Hello{.name = "w"}).take<Refused>().code == "stopping");
  CHECK(door.failures(WorkerFailure::disconnect) == 0);
}

TEST_CASE("a watcher over TCP gets copies of the rows of a local worker") {
  Door door;
  TcpWorker watcher(door);
  watcher.send(Hello{.name = "watcher", .credits = 0, .watch = true});
  (void)watcher.take<Welcome>();
  RawWorker worker(door);
  worker.attach();
  door.open(1);
  door.row(1);
  CHECK(values(watcher.take<HandedBatch>().tensor, 1) == std::vector<int>{100, 101, 102, 0});
}

TEST_CASE("workers over TCP get the rows of their own pipelines") {
  HubUnderTest other;
  Door door;
  door.other = {&other.hub, &other.io()};
  const auto run_both = [&](const auto& happened) {
    door.run_until([&] { return other.run(), happened(); });
  };
  TcpWorker worker(door), another(door);
  worker.attach();
  another.send(Hello{.pipeline = "other", .name = "w"});
  run_both([&] { return other.stats.workers.value() == 1; });
  CHECK(door.stats.workers.value() == 1);
  (void)another.take<Welcome>();
  door.open(1);
  other.open(2);
  door.row(1);
  other.row(2);
  CHECK(rows_of(worker.take<HandedBatch>()) == "1.0");
  CHECK(rows_of(another.take<HandedBatch>()) == "2.0");
  other.hub.dismiss();
  other.run();
}

TEST_CASE("received bytes of workers over TCP have one bound, and a worker beyond it is cut") {
  Door door;
  TcpWorker loud(door), cut(door), quiet(door);
  quiet.attach();  // the first: it gets the stream
  loud.attach();
  cut.attach();
  const auto unread = [&] { return door.budgets.unread.taken(); };
  const auto send = [&](TcpWorker& worker, std::size_t bytes) {
    worker.send_bytes(part_of_message(bytes));
    for (int i = 0; i < 100; ++i) door.run();
  };
  send(loud, own_unread / 2);
  CHECK(unread() == 0);  // it has so much of its own
  loud.send_bytes(std::vector<std::uint8_t>(own_unread));
  door.run_until([&] { return unread() >= own_unread; });
  cut.send_bytes(part_of_message(own_unread));
  door.run_until([&] { return unread() > own_unread; });
  door.budgets.unread.set_limit(unread());
  cut.send_bytes(std::vector<std::uint8_t>(own_unread));
  CHECK(cut.take<Refused>().code == "no_room");
  CHECK(door.failures(WorkerFailure::timeout) == 1);
  CHECK(door.failures(WorkerFailure::protocol) == 0);
  door.open(1);
  door.row(1);
  quiet.send(done(quiet.take<HandedBatch>().id, texts({"yes"})));
  door.run_until([&] { return door.back.size() == 2; });
}

TEST_CASE("the memory of a long message is given back when the message is read") {
  Door door;
  TcpWorker worker(door);
  worker.attach();
  door.open(1);
  door.row(1);
  const BatchId batch = worker.take<HandedBatch>().id;
  worker.send(done(batch, {{Answer::Kind::text, std::string(900'000, 'x')}}));
  door.run_until([&] { return door.back.size() == 2; });
  door.run_until([&] { return door.budgets.unread.taken() == 0; });
}
