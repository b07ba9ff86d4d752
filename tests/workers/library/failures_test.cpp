// SPDX-License-Identifier: Apache-2.0
// The service is lost, refuses the worker, or sends invalid messages.
#include <time.h>

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <limits>
#include <vector>

#include "tests/workers/library/fake_service.h"
#include "workers/library/worker.h"

using namespace millrace;
using namespace std::chrono_literals;

namespace {

Duration thread_cpu_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

TEST_CASE_METHOD(BusyWorker, "a lost service is an error, at next and at done") {
  service.hang_up();
  CHECK(throws_lost(worker, "closed the connection"));
  CHECK_THROWS_AS(worker.done(*batch), WorkerError);
  CHECK(worker.ended());
}

TEST_CASE("a connection that ends within a message is an error") {
  FakeService service(GENERATE(FakeService::Over::path, FakeService::Over::tcp));
  Worker worker = service.attach();
  service.send_raw({100, 0, 0, 0, 1});
  service.hang_up();
  CHECK(throws_lost(worker, "was lost"));
}

TEST_CASE("a connection that ends before Welcome is an error") {
  FakeService service;
  CHECK_THROWS_WITH(service.attach({}, [&] { service.hang_up(); }),
                    Catch::Contains("closed the connection"));
}

TEST_CASE("a message that is longer than allowed ends the connection at once") {
  FakeService service(GENERATE(FakeService::Over::path, FakeService::Over::tcp));
  Worker worker = service.attach();
  service.send_raw({1, 0, 0, 64});
  CHECK(throws_lost(worker, "too long"));
}

TEST_CASE_METHOD(
    BusyWorker,
    "an attached worker that is disconnected gets the reason of the service, at next and at done") {
  service.send(Refused{"timeout", "an answer was overdue"});
  CHECK(throws_lost(worker, "an answer was overdue"));
  CHECK_THROWS_WITH(worker.done(*batch), Catch::Contains("an answer was overdue"));
}

TEST_CASE_METHOD(BusyWorker, "done() of a disconnected worker gets the reason of the service") {
  service.send(Refused{"timeout", "an answer was overdue"});
  service.hang_up();
  CHECK_THROWS_WITH(worker.done(*batch), Catch::Contains("an answer was overdue"));
}

TEST_CASE("a worker whose Bye cannot be sent gets the reason of the service") {
  FakeService service;
  Worker worker = service.attach({.alone = true});
  service.send(Company{1});
  service.send(example_batch(1));
  service.send(Refused{"timeout", "an answer was overdue"});
  service.hang_up();
  CHECK(throws_lost(worker, "an answer was overdue"));
}

TEST_CASE("the error of a disconnected worker names the batch that it holds") {
  const auto words_of = [](FakeService& service, Worker& worker) -> std::string {
    service.send(Refused{"timeout", "an answer was overdue"});
    try {
      (void)worker.next();
    } catch (const WorkerError& error) {
      return error.what();
    }
    return "it was not cut";
  };
  FakeService service;
  Worker holds = service.attach();
  service.send(example_batch(7));
  auto batch = holds.next();
  CHECK_THAT(words_of(service, holds),
             Catch::Matches(".*overdue \\(timeout\\); batch 7 was taken [0-9.]+ s ago and not "
                            "returned: was done\\(\\) not called.*"));
  Worker takes_none = service.attach();
  service.send(example_batch(8));
  CHECK_THAT(words_of(service, takes_none),
             Catch::EndsWith("; batch 8 was received and not taken"));
  Worker idle = service.attach();
  CHECK_THAT(words_of(service, idle), Catch::EndsWith("; this worker held no batch"));
}

TEST_CASE("a worker whose service does not read waits without using CPU time") {
  FakeService service;
  Worker worker = service.attach({.heartbeats = {.interval = 20s, .silence = 1500ms}});
  service.send(example_batch(1));
  auto batch = worker.next();
  service.send(example_batch(2, 1));  // which is not read meanwhile
  const std::vector<Answer> answers{{Answer::Kind::bytes, std::string(1'000'000, 'x')}};
  const Duration before = thread_cpu_time();
  CHECK_THROWS_AS(worker.done(*batch, answers), WorkerError);
  CHECK(thread_cpu_time() - before < 30ms);  // during a wait of 1500 ms
}

TEST_CASE("a refusal and a disconnection have a code, and the loss of the service has none") {
  const auto code = [](auto&& fails) -> std::string {
    try {
      fails();
    } catch (const WorkerError& error) {
      return error.code();
    }
    return "nothing failed";
  };
  FakeService service;
  CHECK(code([&] {
          service.attach({}, [&] { service.send(Refused{"no_room", "too many slabs"}); });
        }) == "no_room");
  Worker cut = service.attach();
  service.send(Refused{"timeout", "an answer was overdue"});
  CHECK(code([&] { (void)cut.next(); }) == "timeout");
  Worker lost = service.attach();
  service.hang_up();
  CHECK(code([&] { (void)lost.next(); }) == "");
}

TEST_CASE("after close() the connection has ended, and the taken batches stay readable") {
  FakeService service;
  Worker worker = service.attach();
  service.slab(0)[0] = std::byte{42};
  for (const std::uint64_t id : {1, 2}) service.send(example_batch(id));
  auto batch = worker.next();
  worker.close();
  CHECK(service.sees_end());
  CHECK(worker.ended());
  CHECK_FALSE(worker.next());
  CHECK(batch->data()[0] == std::byte{42});
  worker.done(*batch);
}

TEST_CASE("a second welcome ends the connection") {
  FakeService service;
  Worker worker = service.attach();
  service.send(service.welcome);
  CHECK(throws_lost(worker, "second Welcome"));
}

TEST_CASE("batches that were received before the service was lost cannot be taken any more") {
  FakeService service;
  Worker worker = service.attach();
  service.send(example_batch(1));
  service.send(example_batch(2, 1));
  auto batch = worker.next();
  service.hang_up();
  CHECK(throws_lost(worker, "closed the connection"));
  CHECK(throws_lost(worker, "closed the connection"));
}

TEST_CASE("an invalid message of the service ends the connection with a reason") {
  const std::vector<std::byte> garbage(100, std::byte{0xa5});
  FakeService service;
  Worker worker = service.attach();
  service.send_bytes(garbage);
  CHECK(throws_lost(worker, "invalid message for workers (malformed)"));
}

TEST_CASE("a batch that does not match the Welcome ends the connection") {
  const auto refused = [](auto change) {
    FakeService service;
    Worker worker = service.attach();
    HandedBatch batch = example_batch(1);
    change(batch);
    service.send(batch);
    return throws_lost(worker, "does not match");
  };
  const std::array<std::byte, 12> tensor{};
  CHECK(refused([](HandedBatch& b) { b.slab = 3; }));
  CHECK(refused([](HandedBatch& b) { b.rows = 5; }));
  CHECK(refused([](HandedBatch& b) { b.width = 4; }));
  CHECK(refused([](HandedBatch& b) {  // not one of the widths of Welcome
    b.width = 2;
    b.framed[0].size = 1;
  }));
  CHECK(refused([](HandedBatch& b) { b.framed[0].slot = 8; }));
  CHECK(refused([](HandedBatch& b) { b.marks[0].slot = 8; }));
  CHECK(refused([](HandedBatch& b) { b.marks.resize(9, b.marks[0]); }));
  CHECK(refused([&](HandedBatch& b) { b.tensor = tensor; }));
  CHECK(refused([](HandedBatch& b) { b.opened.push_back({StreamId{1}, 8, "a", ""}); }));
}

TEST_CASE("an inline tensor that is missing or has a wrong size ends the connection") {
  FakeService service(FakeService::Over::tcp);
  Worker worker = service.attach();
  const std::vector<std::byte> tensor(GENERATE(0u, 11u));
  HandedBatch batch = example_batch(1);
  batch.tensor = tensor;
  service.send(batch);
  CHECK(throws_lost(worker, "does not match"));
}

TEST_CASE("more batches than credits, or out of order, end the connection") {
  FakeService eager, confused;
  Worker worker = eager.attach({.credits = 1});
  eager.send(example_batch(1));
  eager.send(example_batch(2));
  CHECK(throws_lost(worker, "more batches"));
  Worker other = confused.attach();
  confused.send(example_batch(2));
  confused.send(example_batch(2));
  CHECK(throws_lost(other, "out of order"));
}

TEST_CASE("a refusal is an error with the message of the service") {
  FakeService service;
  const auto refuse = [&] { service.send(Refused{"conflict", "there is no pipeline vad"}); };
  CHECK_THROWS_WITH(service.attach({}, refuse), Catch::Contains("there is no pipeline vad"));
}

TEST_CASE("`meanwhile` is called while Welcome is awaited, and ends the wait if it throws") {
  const FakeService service;
  struct Enough {};
  int calls = 0;
  const auto meanwhile = [&] {
    if (++calls == 3) throw Enough();
  };
  CHECK_THROWS_AS(Worker(service.url(), {}, meanwhile), Enough);
}

TEST_CASE("a service of another version is an error that names both") {
  FakeService service;
  service.welcome.version = 7;
  CHECK_THROWS_WITH(service.attach(),
                    Catch::Contains("version 7") && Catch::Contains("worker version 1"));
}

TEST_CASE("a Welcome without its slabs is an error") {
  FakeService none, small, unsealed;
  CHECK_THROWS_WITH(none.attach({}, [&] { none.send(none.welcome); }), Catch::Contains("slabs"));
  const SharedMemory memory = SharedMemory::create(4096);
  CHECK_THROWS_WITH(small.attach({}, [&] { small.send(small.welcome, memory.descriptor()); }),
                    Catch::Contains("too small"));
}

TEST_CASE("a Welcome with too large batches is an error") {
  FakeService service;
  service.welcome.rows = service.welcome.width = std::numeric_limits<std::int32_t>::max();
  service.welcome.width_buckets = {service.welcome.width};
  service.welcome.frames.values = 65535;
  CHECK_THROWS_WITH(service.attach(), Catch::Contains("batches are too large"));
}

TEST_CASE("a url without a listener is an error that names it") {
  CHECK_THROWS_WITH(Worker("unix:/tmp/nobody.sock", {.wait = {}}),
                    Catch::Contains("unix:/tmp/nobody.sock"));
  CHECK_THROWS_WITH(Worker("http://host"), Catch::Contains("http://host"));
}
