// SPDX-License-Identifier: Apache-2.0
#include "workers/hub/hub.h"

#include <catch2/catch.hpp>

#include "tests/workers/hub/hub_fixture.h"

using namespace millrace;
using namespace millrace::test;

TEST_CASE("a worker that attaches receives the shape and its slabs") {
  HubUnderTest h;
  Link& worker = h.connect({.name = "w", .credits = 2});
  const auto welcome = worker.receive<Welcome>();
  CHECK(welcome.slots == 2);
  CHECK(welcome.rows == 4);
  CHECK(welcome.width == 4);
  CHECK(welcome.frames == FrameType{});
  CHECK(welcome.chunk == R"({"size":3})");
  CHECK(welcome.slabs == 3);
  CHECK(welcome.slab_bytes == 4096);
  CHECK(worker.slabs.has_value());
  CHECK(worker.others == 0);
  CHECK(h.stats.workers.value() == 1);
}

TEST_CASE(
    "workers receive the number of others, but the first alone worker counts no later alone ones") {
  HubUnderTest h;
  Link& first = h.connect({.name = "w", .alone = true});
  Link& second = h.connect({.name = "w", .alone = true});
  CHECK(first.others == 0);
  CHECK(second.others == 1);
  Link& third = h.attach();
  CHECK(first.others == 1);
  h.hub.lost(third, WorkerFailure::disconnect);
  CHECK(first.others == 0);
  CHECK(h.stats.failures[WorkerFailure::disconnect].value() == 1);
}

TEST_CASE("a worker that has sent Bye does not count for the others, which are informed at once") {
  HubUnderTest h;
  h.open(1);
  h.row(1);
  Link& leaves = h.attach();
  Link& tap = h.connect({.name = "tap", .alone = true});
  Link& watcher = h.watch();
  CHECK(tap.others == 1);
  h.hub.receive(leaves, Bye{});
  CHECK(!leaves.ended);  // its stream can only move to the tap, after this row
  CHECK(tap.others == 0);
  CHECK(leaves.others == 1);
  CHECK(watcher.others == 2);
  h.run_until([&] { return watcher.beats > 0 || watcher.others == 1; });
  CHECK(watcher.others == 1);
}

TEST_CASE("not every attachment sends the number of others, but the last number is sent") {
  HubUnderTest h;
  Link& first = h.attach(1);
  for (int i = 0; i < 100; ++i) h.attach(1);
  CHECK(first.companies < 50);
  h.run_until([&] { return first.others == 100; });
}

TEST_CASE("a worker with an unknown device is refused") {
  HubUnderTest h;
  Link& worker = h.connect({.name = "w", .device = "abacus"});
  CHECK(worker.receive<Refused>().code == "device");
  CHECK(worker.ended);
  CHECK(h.slab_bytes.taken() == 0);
}

TEST_CASE("a worker whose slabs would exceed the budget is refused until others have left") {
  HubUnderTest h;
  h.slab_bytes.set_limit(8 * 4096);
  Link& worker = h.attach(6);
  CHECK(h.slab_bytes.taken() == 7 * 4096);
  Link& second = h.connect({.name = "w", .credits = 1});
  CHECK(second.receive<Refused>().code == "no_room");
  CHECK(second.ended);
  h.hub.lost(worker, WorkerFailure::disconnect);
  worker.exit();
  h.run();
  CHECK(h.slab_bytes.taken() == 0);
  h.attach(7);
  CHECK(h.slab_bytes.taken() == 8 * 4096);
}

TEST_CASE("a batch names the streams that it opens, and its frames are in its slab") {
  HubUnderTest h;
  h.open(1, "one", R"({"a":1})");
  h.open(2, "two");
  h.row(1);
  h.row(2);
  Link& worker = h.attach();
  const auto batch = worker.receive<HandedBatch>();
  CHECK(rows_of(batch) == "1.0 2.0");
  CHECK(batch.opened == std::vector<OpenedStream>{{StreamId{1}, 0, "one", R"({"a":1})"},
                                                  {StreamId{2}, 1, "two", ""}});
  CHECK(values(worker.slabs->bytes().subspan(batch.slab * 4096), 2) ==
        std::vector{100, 101, 102, 0, 200, 201, 202, 0});
  h.row(1);
  const auto next = worker.receive<HandedBatch>();
  CHECK(next.opened.empty());
  CHECK(next.slab != batch.slab);
  CHECK(values(worker.slabs->bytes().subspan(next.slab * 4096), 1) ==
        std::vector{110, 111, 112, 0});
}

TEST_CASE("a stream that does not ask for it is not notified when its row is batched") {
  HubUnderTest h;
  Link& worker = h.attach();
  h.open(1);
  h.row(1, 0, false);
  h.row(1, 0, true);
  const Time before = Clock::now();
  const auto first = worker.receive<HandedBatch>();
  const auto second = worker.receive<HandedBatch>();
  CHECK(first.rows + second.rows == 2);
  REQUIRE(h.back.size() == 1);
  const auto& batched = std::get<RowBatched>(h.back[0].what);
  CHECK(batched.seq == 1);
  CHECK(batched.closed == second.closed);
  CHECK(batched.closed <= before);
}

TEST_CASE("each stream is notified that its row was batched, and receives the answer") {
  HubUnderTest h;
  Link& worker = h.attach();
  h.open(1);
  h.open(2);
  h.row(1);
  h.row(2);
  h.mark(2, flag::last);
  h.run();
  CHECK(h.returned() == "1 batched 2 batched");
  h.done(worker, worker.receive<HandedBatch>().id, texts({"yes"}));
  CHECK(h.returned() == "1.0=yes 2 batched");
  h.done(worker, worker.receive<HandedBatch>().id, texts({"no"}));
  h.done(worker, worker.receive<HandedBatch>().id, {}, texts({"mark"}));
  CHECK(h.returned() == "2.0=no 2.1=mark");
  CHECK(h.stats.results[ResultStatus::ok].value() == 3);
}

TEST_CASE("the error that a worker returns for a row is in the log") {
  HubUnderTest h;
  Link& worker = h.attach();
  h.open(1);
  h.row(1);
  h.run();
  h.done(worker, worker.receive<HandedBatch>().id, {Answer{Answer::Kind::error, "no model"}});
  CHECK(h.warnings == std::vector<std::string>{"row failed"});
  CHECK(h.last_line == "mic: no model");
  CHECK(h.stats.results[ResultStatus::error].value() == 1);
}

TEST_CASE("a worker that holds a batch does not wait for one") {
  HubUnderTest h;
  Link& worker = h.attach();
  const auto waits = [&] { return count_of(h.stats.wait); };
  h.open(1);
  h.row(1);
  h.row(1);
  CHECK(waits() == 1);  // the wait since it attached
  h.done(worker, worker.receive<HandedBatch>().id);
  h.row(1);
  CHECK(waits() == 1);  // the second batch was there
  h.done(worker, worker.receive<HandedBatch>().id);
  h.done(worker, worker.receive<HandedBatch>().id);
  h.row(1);
  CHECK(waits() == 2);
}

TEST_CASE("a row's instants are in order, also if the worker's are wrong") {
  HubUnderTest h;
  Link& worker = h.attach();
  h.open(1);
  h.row(1);
  const BatchId batch = worker.receive<HandedBatch>().id;
  h.back.clear();
  h.hub.receive(worker, Done{batch, {}, {}, Clock::now() + 1h, Clock::now() - 1h});
  h.run();
  REQUIRE(h.back.size() == 1);
  const Instants& at = std::get<RowDone>(h.back[0].what).at;
  CHECK(at.ready <= at.closed);
  CHECK(at.closed <= at.copied);
  CHECK(at.copied <= at.taken);
  CHECK(at.taken <= at.done);
  CHECK(at.done <= Clock::now());
}

TEST_CASE("a stream whose END row is done gives its capacity back") {
  HubUnderTest h;
  Link& worker = h.attach();
  h.open(1);
  CHECK(h.hub.stream_budget().taken() == 1);
  h.row(1, flag::last | flag::end);
  h.done(worker, worker.receive<HandedBatch>().id);
  CHECK(h.hub.stream_budget().taken() == 0);
}

TEST_CASE("a worker that returns a batch out of order is disconnected, and another gets its rows") {
  HubUnderTest h;
  Link& worker = h.attach();
  h.open(1);
  h.row(1);
  h.row(1);
  (void)worker.receive<HandedBatch>();
  h.done(worker, worker.receive<HandedBatch>().id);
  CHECK(worker.receive<Refused>().code == "protocol");
  CHECK(worker.ended);
  CHECK(h.stats.failures[WorkerFailure::protocol].value() == 1);
  CHECK(h.stats.workers.value() == 0);
  CHECK(rows_of(h.attach().receive<HandedBatch>()) == "1.0R");
  CHECK(h.returned() == "1 batched 1 batched");
}

TEST_CASE("a worker that returns a wrong number of answers is disconnected") {
  HubUnderTest h;
  Link& worker = h.attach();
  h.open(1);
  h.row(1);
  h.done(worker, worker.receive<HandedBatch>().id, texts({"one", "too many"}));
  CHECK(worker.receive<Refused>().code == "protocol");
  CHECK(worker.ended);
  CHECK(h.stats.failures[WorkerFailure::protocol].value() == 1);
  CHECK(rows_of(h.attach().receive<HandedBatch>()) == "1.0R");
}

TEST_CASE("a batch that is done twice is ignored the second time, and counted") {
  HubUnderTest h;
  Link& worker = h.attach();
  h.open(1);
  h.row(1);
  const BatchId batch = worker.receive<HandedBatch>().id;
  h.done(worker, batch, texts({"yes"}));
  h.done(worker, batch, texts({"no"}));
  CHECK(h.returned() == "1 batched 1.0=yes");
  CHECK(h.stats.results[ResultStatus::late].value() == 1);
  CHECK(!worker.ended);
}

TEST_CASE("the log has a line when a worker attaches, sends Bye, and has left") {
  HubUnderTest h;
  Link& worker = h.attach();
  h.hub.receive(worker, Bye{});
  CHECK(h.lines == std::vector<std::string>{"worker attached", "worker leaves", "worker left"});
  CHECK(h.warnings.empty());
}

TEST_CASE("the loss of a worker is a warning") {
  HubUnderTest h;
  h.hub.lost(h.attach(), WorkerFailure::disconnect);
  CHECK(h.warnings == std::vector<std::string>{"worker lost"});
  CHECK(h.last_line == ": disconnect");
}

TEST_CASE("the line about a lost worker has the streams that moved, and those that wait") {
  HubUnderTest h;
  Link& first = h.attach();
  for (const std::uint64_t id : {1, 2}) h.open(id);
  h.run();
  h.attach();
  h.open(3);
  h.run();
  h.hub.lost(first, WorkerFailure::disconnect);
  CHECK((h.last_moved.moved == 1 && h.last_moved.waiting == 1));
}

TEST_CASE("a silent worker is disconnected, and another gets its rows") {
  HubUnderTest h({.silence = 5ms, .answer = 1h, .first_answer = 1h});
  h.open(1);
  h.row(1);
  Link& worker = h.attach();
  const auto batch = worker.receive<HandedBatch>();
  CHECK(rows_of(batch) == "1.0");
  h.run_until([&] { return worker.ended; });
  CHECK(h.last_line == ": no heartbeat for 5 ms");
  CHECK(worker.receive<Refused>() == Refused{"timeout", "no heartbeat for 5 ms"});
  CHECK(h.stats.failures[WorkerFailure::timeout].value() == 1);
  CHECK(rows_of(h.attach().receive<HandedBatch>()) == "1.0R");
  h.done(worker, batch.id, texts({"late"}));
  CHECK(h.returned() == "1 batched");
}

TEST_CASE("workers and watchers receive heartbeats") {
  HubUnderTest h;
  Link& worker = h.attach();
  Link& watcher = h.watch();
  h.run_until([&] { return worker.beats > 0 && watcher.beats > 0; });
}

TEST_CASE("a drain fails streams without a slot when its time is over") {
  HubUnderTest h;
  h.open(1);
  h.run();
  h.hub.drain(Clock::now() + 5ms);
  h.run_until([&] { return !h.back.empty(); });
  CHECK(std::get<StreamDropped>(h.back[0].what).code == ErrorCode::no_worker);
  CHECK(h.hub.stream_budget().taken() == 0);
}

TEST_CASE("a worker without streams that sends Bye receives Bye, and its connection ends") {
  HubUnderTest h;
  Link& worker = h.attach();
  Link& other = h.attach();
  h.hub.receive(worker, Bye{});
  (void)worker.receive<Bye>();
  CHECK(worker.ended);
  CHECK(!other.ended);
  CHECK(other.others == 0);
  h.await_slabs();
  CHECK(h.slab_bytes.taken() == 3 * 4096);
}

TEST_CASE("stop() sends Bye to workers and watchers, and after it the hub does nothing") {
  HubUnderTest h;
  Link& worker = h.attach();
  Link& watcher = h.watch();
  h.open(1);
  h.hub.stop();
  h.mark(1, flag::last | flag::end | flag::abort);
  for (Link* link : {&worker, &watcher}) {
    (void)link->receive<Bye>();
    CHECK(link->ended);
    CHECK(link->idle());
  }
  CHECK(h.returned().empty());
  h.await_slabs();
  CHECK(h.slab_bytes.taken() == 0);
}

TEST_CASE("the stream budget is the slots of all workers, or of one without workers") {
  HubUnderTest h;
  CHECK(h.hub.stream_budget().limit() == 2);
  Link& worker = h.attach();
  CHECK(h.hub.stream_budget().limit() == 2);
  h.attach();
  h.attach();
  CHECK(h.hub.stream_budget().limit() == 6);
  h.hub.lost(worker, WorkerFailure::disconnect);
  CHECK(h.hub.stream_budget().limit() == 4);
}
