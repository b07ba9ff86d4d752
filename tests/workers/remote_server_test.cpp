// SPDX-License-Identifier: Apache-2.0
#include "workers/remote_server.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/support/allocations.h"
#include "tests/workers/remote_fixture.h"

using namespace millrace;
using namespace millrace::test;

namespace {

Done done(BatchId batch, std::vector<Answer> answers) {
  return {
      .batch = batch, .answers = std::move(answers), .mark_answers = {}, .taken = {}, .done = {}};
}

template <class Message>
std::string bytes_of(const Message& message) {
  Encoder encoder;
  const Bytes bytes = encoder.encode(message);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

TEST_CASE("a worker of another machine is welcomed without slabs, and gets its tensors") {
  RemoteDoor door;
  RemoteWorker worker(door);
  worker.send(Hello{.name = "w", .credits = 2, .device = "tpu"});
  const auto welcome = worker.take<Welcome>();
  CHECK(welcome.slabs == 0);
  CHECK(welcome.slots == 2);
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

TEST_CASE("its slabs and its messages count, and are free as soon as it is lost") {
  RemoteDoor door;
  {
    RemoteWorker worker(door);
    worker.attach();
    CHECK(door.slab_bytes.taken() == 5 * 4096);
    worker.vanish();
  }
  door.run_until([&] { return door.failures(WorkerFailure::disconnect) == 1; });
  door.await_slabs();
  CHECK(door.slab_bytes.taken() == 0);
}

TEST_CASE("a worker of another machine that vanishes is lost, and another gets its rows") {
  RemoteDoor door;
  door.open(1);
  door.row(1);
  RemoteWorker worker(door), next(door);
  CHECK(rows_of(worker.attach().take<HandedBatch>()) == "1.0");
  worker.vanish();
  CHECK(rows_of(next.attach().take<HandedBatch>()) == "1.0R");
  CHECK(door.failures(WorkerFailure::disconnect) == 1);
}

TEST_CASE("answers that came before the end of a connection count") {
  RemoteDoor door;
  door.open(1);
  door.row(1);
  RawPeer worker(door.server.port());
  worker.shake_hands();
  door.run_until([&] { return worker.is_ready(); });
  worker.part(bytes_of(Hello{.name = "w"}));
  door.run_until([&] { return door.stats.in_flight.value() == 1; });
  worker.part(bytes_of(done(BatchId{1}, texts({"yes"}))));
  worker.hang_up();
  door.run_until([&] { return door.back.size() == 2; });
  CHECK(door.returned() == "1 taken 1.0=yes");
}

TEST_CASE("who asks for what there is not, or begins with something else, hears so") {
  RemoteDoor door;
  const auto refusal = [&](RemoteWorker& worker) { return worker.take<Refused>().code; };
  RemoteWorker pipeline(door), version(door), garbage(door), other(door), parts(door);
  CHECK(refusal(pipeline.send(Hello{.pipeline = "vad", .name = "w"})) == "pipeline");
  CHECK(refusal(version.send(Hello{.version = 7, .name = "w"})) == "version");
  CHECK(refusal(garbage.send_bytes("GET / HTTP/1.1")) == "protocol");
  CHECK(refusal(other.send(Heartbeat{})) == "protocol");
  CHECK(refusal(parts.send_bytes("two", true).send_bytes("parts")) == "protocol");
  CHECK(door.lines == std::vector<std::string>(5, "worker refused"));
  garbage.send(Hello{.name = "w"});  // nothing more is heard of it
  RemoteWorker(door).attach();
  CHECK(door.stats.workers.value() == 1);
}

TEST_CASE("what fails of one that says Hello ends that one") {
  RemoteDoor door;
  RemoteWorker worker(door);
  worker.send(Hello{.pipeline = "broken", .name = "w"});
  door.run_until([&] { return door.server.stats().disconnected.value() == 1; });
  CHECK(door.lines == std::vector<std::string>{"worker refused"});
  RemoteWorker(door).attach();
}

TEST_CASE("what is no message of a worker cuts it, with a reason, counted once") {
  RemoteDoor door;
  RemoteWorker worker(door), other(door);
  worker.attach();
  other.attach();
  SECTION("garbage") { worker.send_bytes("\1\2\3\4\5\6\7"); }
  SECTION("nothing in it") { worker.send_bytes(""); }
  SECTION("parts") { worker.send_bytes("a", true).send_bytes("b", true).send_bytes("c"); }
  SECTION("a service's message") { worker.send(Welcome{}); }
  SECTION("a second Hello") { worker.send(Hello{.name = "w"}); }
  SECTION("a batch that nobody has") { worker.send(Done{}); }
  for (int more = 0; more < 100; ++more) worker.send_bytes("a", true).send_bytes("b");
  CHECK(worker.take<Refused>().code == "protocol");
  CHECK(door.failures(WorkerFailure::protocol) == 1);
  CHECK(door.failures(WorkerFailure::disconnect) == 0);
  CHECK(door.stats.workers.value() == 1);
}

TEST_CASE("one that was told the end and stays is cut") {
  RemoteDoor door;
  RawPeer peer(door.server.port());
  peer.shake_hands();
  door.run_until([&] { return peer.is_ready(); });
  peer.part("no Hello");
  door.run_until([&] { return peer.is_over(); });
  door.run_until([&] { return door.server.stats().connections.value() == 0; });
}

TEST_CASE("a worker of another machine that is silent is cut, and another gets its rows") {
  RemoteDoor door({.silence = 1s, .answer = 1h, .first_answer = 1h});
  door.open(1);
  door.row(1);
  RemoteWorker worker(door);
  (void)worker.attach().take<HandedBatch>();
  CHECK(worker.take<Refused>().code == "timeout");
  CHECK(rows_of(RemoteWorker(door).attach().take<HandedBatch>()) == "1.0R");
}

TEST_CASE("a worker of another machine that leaves hears Bye") {
  RemoteDoor door;
  RemoteWorker worker(door), stays(door), watcher(door);
  worker.attach().send(Bye{});
  (void)worker.take<Bye>();
  stays.attach();
  watcher.send(Hello{.name = "watcher", .credits = 0, .watch = true});
  (void)watcher.take<Welcome>();
  door.hub.dismiss();
  (void)stays.take<Bye>();
  (void)watcher.take<Bye>();
  RemoteWorker late(door);
  CHECK(late.send(Hello{.name = "w"}).take<Refused>().code == "stopping");
  CHECK(door.failures(WorkerFailure::disconnect) == 0);
}

TEST_CASE("a watcher on another machine sees what workers of this one get") {
  RemoteDoor door;
  RemoteWorker watcher(door);
  watcher.send(Hello{.name = "watcher", .credits = 0, .watch = true});
  (void)watcher.take<Welcome>();
  (void)door.attach();
  door.open(1);
  door.row(1);
  CHECK(values(watcher.take<HandedBatch>().tensor, 1) == std::vector<int>{100, 101, 102, 0});
}

TEST_CASE("workers on other machines get the rows of their own pipelines") {
  RemoteDoor door;
  RemoteWorker worker(door), another(door);
  worker.attach();
  another.attach(2, "other");
  CHECK(door.stats.workers.value() == 1);
  CHECK(door.other.stats.workers.value() == 1);
  door.open(1);
  door.other.open(2);
  door.row(1);
  door.other.row(2);
  CHECK(rows_of(worker.take<HandedBatch>()) == "1.0");
  CHECK(rows_of(another.take<HandedBatch>()) == "2.0");
}

TEST_CASE("what waits for busy home threads has one bound, and who finds no room in it is cut") {
  RemoteDoor door;
  constexpr std::size_t most = RemoteDoor::max_unread - own_unread / 2;
  RemoteWorker loud(door), cut(door), quiet(door);
  loud.attach(2, "other");
  cut.attach();
  quiet.attach();
  door.other_runs = false;
  loud.beat(most);
  door.run_until([&] { return door.server.unread().taken() > most; });
  CHECK(cut.beat(own_unread).take<Refused>().code == "no_room");
  CHECK(door.failures(WorkerFailure::timeout) == 1);
  CHECK(door.failures(WorkerFailure::protocol) == 0);
  door.open(1);
  door.row(1);
  const BatchId batch = quiet.beat(own_unread / 2).take<HandedBatch>().id;
  quiet.send(done(batch, texts({"yes"})));
  door.run_until([&] { return door.back.size() == 2; });

  door.other_runs = true;
  door.run_until([&] { return door.server.unread().taken() == 0; });
  CHECK(door.other.stats.workers.value() == 1);
}

TEST_CASE("what waits in the room of all takes none of a worker's own") {
  RemoteDoor door;
  RemoteWorker worker(door);
  worker.attach(2, "other");
  door.other_runs = false;
  worker.beat(RemoteDoor::max_unread - own_unread / 2).beat(own_unread / 2);
  worker.send_bytes("two", true).send_bytes("parts");  // nothing behind what has no room is heard
  door.run_until([&] { return door.server.stats().malformed.value() == 1; });
  door.other_runs = true;
  CHECK(worker.take<Refused>().code == "protocol");
}

TEST_CASE("those that are gone count until their home thread has heard it") {
  RemoteDoor door;
  door.other_runs = false;
  const std::string hello = bytes_of(Hello{.pipeline = "other", .name = "w"});
  for (std::size_t come = 0; come < max_remote_lines + 1;) {
    std::vector<RawPeer> some;
    for (; some.size() < 64 && come < max_remote_lines + 1; ++come)
      some.emplace_back(door.server.port()).shake_hands();
    for (RawPeer& peer : some) {
      door.run_until([&] { return peer.is_ready(); });
      peer.part(hello).hang_up();
    }
  }
  door.run_until([&] { return door.logged("worker refused"); });

  door.other_runs = true;
  const auto known = [&](const char* event) { return std::ranges::count(door.other.lines, event); };
  door.run_until([&] {
    return known("worker refused") + known("worker lost") == std::ptrdiff_t{max_remote_lines};
  });
  CHECK(door.lines.size() == 1);
  RemoteWorker(door).attach();
}

TEST_CASE("what was posted for a worker that is gone does not end the next at its address") {
  HubUnderTest home;
  net::io_context other;
  Mailbox<ToRemote> out(other, max_messages, [](std::vector<ToRemote>&) {});
  RemoteWorkers workers(home.hub, home.io(), out);
  RemoteLine line(ZeromqPeer{1});
  const Hello hello{.pipeline = "default", .name = "w"};
  workers.put({.line = &line, .what = hello});
  home.run();
  home.await_slabs();
  CHECK(home.stats.workers.value() == 1);
  workers.put({.line = &line, .what = FromRemote::Malformed{"nonsense"}});  // posts its end
  workers.put({.line = &line, .what = FromRemote::Lost{}});
  workers.put({.line = &line, .what = hello});
  home.run();
  home.await_slabs();
  CHECK(home.stats.workers.value() == 1);
  workers.put({.line = &line, .what = FromRemote::Lost{}});
  home.run();
  CHECK(home.stats.workers.value() == 0);
}

TEST_CASE("a small message counts for the memory that it takes until it is read") {
  RemoteDoor door;
  RemoteWorker worker(door);
  worker.attach(2, "other");
  door.other_runs = false;
  for (int some = 0; some < 400; ++some) worker.beat();
  door.run_until([&] { return door.server.unread().taken() > 100 * 1024; });
}

TEST_CASE("a worker that there is no memory to send to is cut, and no other") {
  RemoteDoor door;
  RemoteWorker worker(door), other(door);
  other.attach();
  worker.send(Hello{.pipeline = "other", .name = "w"});
  door.run_until([&] { return door.other.stats.workers.value() == 1; });
  {
    // What a ring takes first: its outbox. What a heartbeat needs meanwhile is there.
    constexpr std::size_t first = 4 * sizeof(ZeromqMessage);
    const Scarcity scarcity(first, first);
    door.run();
  }
  door.run_until([&] { return door.other.stats.workers.value() == 0; });
  CHECK(door.other.stats.failures[WorkerFailure::disconnect].value() == 1);
  CHECK(door.logged("worker's connection failed"));
  CHECK(door.stats.workers.value() == 1);
  worker.vanish();
}

TEST_CASE("one that there is no memory to refuse is cut, and no other") {
  RemoteDoor door;
  RemoteWorker parts(door);
  parts.send_bytes("two", true).send_bytes("parts");
  {
    const Scarcity scarcity(1024);  // what an encoder takes first
    door.run_until([&] { return door.server.stats().disconnected.value() == 1; });
  }
  CHECK(door.lines == std::vector<std::string>(2, "worker refused"));
  RemoteWorker(door).attach();
}
