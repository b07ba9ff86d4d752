// SPDX-License-Identifier: Apache-2.0
#include "workers/library/worker.h"

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/workers/library/fake_service.h"

using namespace millrace;
using namespace std::chrono_literals;

namespace {

// The interval is short, so that tests that wait for heartbeats are short. The silence is longer
// than any pause of a slow machine while the service sends.
constexpr Heartbeats fast{.interval = 5ms, .silence = 5s};
// For tests in which the service is silent.
constexpr Heartbeats impatient{.interval = 5ms, .silence = 50ms};

template <class T>
void put(MutableBytes slab, std::size_t offset, const std::vector<T>& values) {
  std::memcpy(slab.data() + offset, values.data(), values.size() * sizeof(T));
}

template <class T>
std::vector<T> list(std::span<const T> values) {
  return {values.begin(), values.end()};
}

}  // namespace

TEST_CASE("a worker sends its settings and has the properties of the Welcome") {
  FakeService service;
  const Worker worker = service.attach({.pipeline = "vad", .name = "seven", .credits = 3});
  CHECK(service.hello() == Hello{.pipeline = "vad", .name = "seven", .credits = 3});
  CHECK(worker.device() == "host");
  CHECK(worker.ordinal() == -1);
  CHECK(worker.slots() == 8);
  CHECK(worker.rows() == 4);
  CHECK(worker.width() == 3);
  CHECK(worker.values() == 1);
  CHECK(worker.dtype() == Element::s16);
  CHECK(worker.rate() == 16000);
  CHECK(worker.chunk() == R"({"size":3})");
}

TEST_CASE("a worker on a device that does not exist does not attach") {
  FakeService service;
  try {
    const Worker worker(service.url(), {.device = "cuda:63"});
    FAIL("it attached");
  } catch (const WorkerError& error) {
    CHECK(error.code() == "device");
    CHECK_THAT(error.what(),
               Catch::Contains("no device \"cuda:63\" on this machine; available: host"));
  }
}

TEST_CASE("a batch is read from the slab that the service wrote") {
  FakeService service;
  Worker worker = service.attach();
  const SlabLayout layout = layout_of({.rows = 2, .marks = 1, .width = 3});
  put<std::int16_t>(service.slab(1), 0, {1, 2, 3, 0, 0, 0});
  put<std::int32_t>(service.slab(1), layout.slots, {5, 8, 5});
  put<std::int32_t>(service.slab(1), layout.size, {3, 0, 0});
  put<std::uint8_t>(service.slab(1), layout.flags, {7, 0, 16});
  service.send(example_batch(1, 1));
  const auto batch = worker.next();
  REQUIRE(batch.has_value());
  CHECK(batch->id() == BatchId{1});
  CHECK(batch->rows() == 2);
  CHECK(batch->data().size() == 12);
  CHECK(reinterpret_cast<std::uintptr_t>(batch->data().data()) % 256 == 0);
  CHECK(list<std::int16_t>(batch->row_as<std::int16_t>(0)) == std::vector<std::int16_t>{1, 2, 3});
  CHECK(list(batch->slot()) == std::vector{5, 8, 5});
  CHECK(list(batch->size()) == std::vector{3, 0, 0});
  CHECK(list(batch->flags()) == std::vector<std::uint8_t>{7, 0, 16});
  CHECK(batch->framed() == example_batch(1).framed);
  CHECK(batch->marks() == example_batch(1).marks);
}

TEST_CASE("an inline batch has the same arrays as one in a slab") {
  FakeService service;
  service.welcome.slabs = 0;
  Worker worker = service.attach();
  const std::array<std::int16_t, 6> tensor{1, 2, 3, 0, 0, 0};
  for (std::uint64_t id = 1; id <= 3; ++id) {
    HandedBatch message = example_batch(id);
    message.tensor = std::as_bytes(std::span(tensor));
    service.send(message);
    auto batch = worker.next();
    REQUIRE(batch.has_value());
    CHECK(list<std::int16_t>(batch->row_as<std::int16_t>(0)) == std::vector<std::int16_t>{1, 2, 3});
    CHECK(reinterpret_cast<std::uintptr_t>(batch->data().data()) % 256 == 0);
    CHECK(list(batch->slot()) == std::vector{5, 8, 5});
    CHECK(list(batch->size()) == std::vector{3, 0, 0});
    CHECK(list(batch->left()) == std::vector{0, 0, 0});
    CHECK(list(batch->right()) == std::vector{0, 0, 0});
    CHECK(list(batch->flags()) == std::vector<std::uint8_t>{7, 0, 16});
    worker.done(*batch);
  }
}

TEST_CASE("a batch of marker rows alone has no tensor") {
  FakeService service;
  Worker worker = service.attach();
  HandedBatch message = example_batch(1);
  message.rows = 0;
  message.framed.clear();
  service.send(message);
  const auto batch = worker.next();
  CHECK(batch->rows() == 0);
  CHECK(batch->data().empty());
  CHECK(batch->slot().size() == 1);
}

TEST_CASE("answers reach the service with the batch and the worker's instants") {
  FakeService service;
  Worker worker = service.attach();
  service.send(example_batch(1));
  const Time before = Clock::now();
  auto batch = worker.next();
  const std::vector<Answer> answers{{Answer::Kind::json, "0.5"}};
  const std::vector<Answer> marks{{Answer::Kind::text, "end"}};
  worker.done(*batch, answers, marks);
  const auto done = service.receive<Done>();
  CHECK(done.batch == BatchId{1});
  CHECK(done.answers == answers);
  CHECK(done.mark_answers == marks);
  CHECK(before <= done.taken);
  CHECK(done.taken <= done.done);
  CHECK(done.done <= Clock::now());
}

TEST_CASE("endpoints reach the service with and without other answers") {
  FakeService service;
  Worker worker = service.attach();
  service.send(example_batch(1));
  auto batch = worker.next();
  worker.done(*batch, std::array{Answer{Answer::Kind::json, "1", true}});
  CHECK(service.receive<Done>().answers == std::vector{Answer{Answer::Kind::json, "1", true}});
  service.send(example_batch(2));
  batch = worker.next();
  worker.done(*batch, std::array{Answer{.endpoint = true}});
  CHECK(service.receive<Done>().answers == std::vector{Answer{.endpoint = true}});
}

TEST_CASE("answers too long for a message are refused, and the batch can still be returned") {
  FakeService service;
  Worker worker = service.attach();
  service.send(example_batch(1));
  auto batch = worker.next();
  const std::string half(max_to_service / 2, 'x');
  const std::vector<Answer> answers{{Answer::Kind::text, half}}, marks{{Answer::Kind::text, half}};
  CHECK_THROWS_AS(worker.done(*batch, answers, marks), std::invalid_argument);
  worker.done(*batch, std::array{Answer{Answer::Kind::text, "fits"}});
  CHECK(service.receive<Done>().answers.front().data == "fits");
}

TEST_CASE("an error that is too long is cut, between two characters") {
  FakeService service;
  Worker worker = service.attach();
  service.send(example_batch(1));
  auto batch = worker.next();
  const std::string begin(Worker::longest_error - 1, 'x');
  worker.fail(*batch, begin + "\xc3\xa9" + std::string(max_to_service, 'x'));
  const auto done = service.receive<Done>();
  CHECK(done.answers.front().data == begin);
  CHECK(done.mark_answers.front().data == begin);
}

TEST_CASE("a worker holds as many batches as it has credits, and returns them in order") {
  FakeService service;
  Worker worker = service.attach();
  service.send(example_batch(1, 0));
  service.send(example_batch(2, 1));
  auto first = worker.next();
  auto second = worker.next();
  CHECK_THROWS_AS(worker.done(*second), std::logic_error);
  worker.done(*first);
  worker.done(*second);
  CHECK_THROWS_AS(worker.done(*first), std::logic_error);
  CHECK(service.receive<Done>().batch == BatchId{1});
  CHECK(service.receive<Done>().batch == BatchId{2});
}

TEST_CASE("a wrong number of answers is refused, and the batch can still be returned") {
  FakeService service;
  Worker worker = service.attach();
  service.send(example_batch(1));
  auto batch = worker.next();
  const std::vector<Answer> two(2);
  CHECK_THROWS_AS(worker.done(*batch, two), std::invalid_argument);
  CHECK_THROWS_AS(worker.done(*batch, {}, two), std::invalid_argument);
  worker.done(*batch);
  CHECK(service.receive<Done>().answers.empty());
}

TEST_CASE("answers larger than the socket's buffer arrive whole") {
  FakeService service;
  Worker worker = service.attach();
  service.send(example_batch(1));
  auto batch = worker.next();
  const std::vector<Answer> answers{{Answer::Kind::bytes, std::string(5'000'000, 'x')}};
  std::jthread user([&] { worker.done(*batch, answers); });
  CHECK((service.receive<Done>().answers == answers));
}

TEST_CASE("waiting ends at its deadline or when it is interrupted") {
  FakeService service;
  Worker worker = service.attach();
  CHECK_FALSE(worker.next_until(Clock::now()).has_value());
  worker.interrupt();
  CHECK_FALSE(worker.next().has_value());
  std::jthread other([&] { worker.interrupt(); });
  CHECK_FALSE(worker.next().has_value());
  CHECK_FALSE(worker.ended());
}

TEST_CASE("an interrupt comes before the batches that wait") {
  FakeService service;
  Worker worker = service.attach();
  service.send(example_batch(1));
  worker.interrupt();
  CHECK_FALSE(worker.next().has_value());
  CHECK(worker.next().has_value());
}

TEST_CASE(
    "after the Bye of the service the received batches can be taken and done, then it has ended") {
  FakeService service;
  Worker worker = service.attach();
  service.send(example_batch(1));
  service.send(Bye{});
  auto batch = worker.next();
  REQUIRE(batch.has_value());
  worker.done(*batch);
  CHECK(service.receive<Done>().batch == BatchId{1});
  service.hang_up();
  CHECK_FALSE(worker.next().has_value());
  CHECK(worker.ended());
}

TEST_CASE("a worker that sent Bye gets batches until the service ends the connection") {
  FakeService service;
  Worker worker = service.attach();
  worker.bye();
  worker.bye();
  (void)service.receive<Bye>();
  service.send(example_batch(1));
  auto batch = worker.next();
  REQUIRE(batch.has_value());
  worker.done(*batch);
  (void)service.receive<Done>();
  service.hang_up();
  CHECK_FALSE(worker.next().has_value());
  CHECK(worker.ended());
}

TEST_CASE("a worker with `alone` sends Bye as soon as another worker is attached") {
  FakeService service;
  Worker worker = service.attach({.alone = true});
  service.send(Company{0});
  service.send(Company{1});
  service.send(example_batch(1));
  REQUIRE(worker.next().has_value());
  CHECK(worker.company() == 1);
  (void)service.receive<Bye>();
  service.send(Company{.workers = 1, .moved = 3, .waiting = 2});
  CHECK_FALSE(worker.next_until(Clock::now()));
  CHECK((worker.moved_streams() == 3 && worker.waiting_streams() == 2));
}

TEST_CASE("a watcher has no credits, and may take batches long after they were sent") {
  FakeService service;
  service.welcome.slabs = 0;
  Worker worker = service.attach({.watch = true});
  CHECK(service.hello().watch);
  CHECK(service.hello().credits == 0);
  const std::array<std::byte, 12> tensor{};
  for (std::uint64_t id = 1; id <= 20; ++id) {
    HandedBatch message = example_batch(id);
    message.tensor = tensor;
    service.send(message);
  }
  service.send(Bye{});
  for (std::uint64_t id = 1; id <= 20; ++id) {
    auto batch = worker.next();
    REQUIRE(batch.has_value());
    CHECK(batch->id() == BatchId{id});
    worker.done(*batch);
  }
  CHECK_FALSE(worker.next().has_value());
  service.hang_up();
}

TEST_CASE("heartbeats are sent while the user computes, and while it waits") {
  FakeService service;
  Worker worker = service.attach({.heartbeats = fast});
  for (int i = 0; i < 3; ++i) (void)service.receive<Heartbeat>();
  std::jthread user([&] { (void)worker.next(); });
  for (int i = 0; i < 3; ++i) (void)service.receive<Heartbeat>();
  worker.interrupt();
}

TEST_CASE("a service that sends messages is not lost, however long the user computes") {
  FakeService service;
  constexpr auto silence = 1500ms;  // longer than this thread may wait for a CPU
  Worker worker = service.attach({.heartbeats = {.interval = 20ms, .silence = silence}});
  for (const Time begin = Clock::now(); Clock::now() < begin + silence + 100ms;) {
    (void)service.receive<Heartbeat>();
    service.send(Heartbeat{});
  }
  service.send(example_batch(1));
  CHECK(worker.next().has_value());
}

TEST_CASE("a silent service is lost, whether the user waits or computes") {
  FakeService waiting, computing;
  Worker worker = waiting.attach({.heartbeats = impatient});
  CHECK(throws_lost(worker, "too long"));
  Worker other = computing.attach({.heartbeats = impatient});
  CHECK(computing.sees_end());
  CHECK(throws_lost(other, "too long"));
}

TEST_CASE("a worker that is destroyed ends its connection") {
  FakeService service;
  { const Worker worker = service.attach(); }
  CHECK(service.sees_end());
}
