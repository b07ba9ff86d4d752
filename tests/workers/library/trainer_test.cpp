// SPDX-License-Identifier: Apache-2.0
// A trainer: a worker that receives the batches of a plan.
#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "gpu/host/companion_layout.h"
#include "tests/workers/library/fake_service.h"
#include "workers/library/worker.h"
#include "workers/plan/plan_text.h"
#include "workers/plan/step_order.h"

using namespace millrace;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t steps = 10;  // of each epoch

const std::vector<CompanionFormat> companions{
    {.name = "vad", .element = CompanionElement::u8},
    {.name = "clean", .element = CompanionElement::s16, .values = 2}};

PlanText plan_with(const std::vector<CompanionFormat>& with) {
  return {.origin = R"({"digest":"7f","streams":9})",
          .epoch = 0,
          .steps = steps,
          .slots = 8,
          .companions = with};
}

// A server of batches with 8 slots; a test plays its part.
struct Server : FakeService {
  explicit Server(Over over = Over::path, const std::vector<CompanionFormat>& with = {})
      : FakeService(over) {
    if (over == Over::tcp) welcome.slabs = 0;
    welcome.plan = to_json(plan_with(with));
  }

  Worker attach_trainer(const TrainerHello& trainer = {}, std::uint32_t credits = 2) {
    return attach({.credits = credits, .trainer = trainer});
  }

  HandedBatch step(std::uint64_t id, std::uint64_t step, std::uint64_t epoch = 0) const {
    HandedBatch batch = example_batch(id);
    batch.slab = static_cast<std::uint32_t>(id % 3);
    batch.marks.clear();
    batch.epoch = epoch;
    batch.step = step;
    batch.steps = steps;
    batch.body = 3;
    return batch;
  }
};

HandedBatch at(std::uint64_t epoch, std::uint64_t step) {
  HandedBatch batch;
  batch.epoch = epoch;
  batch.step = step;
  batch.steps = steps;
  return batch;
}

}  // namespace

TEST_CASE("a trainer sends its position, and receives the plan") {
  Server server;
  const TrainerHello position{.rank = 1, .world = 4, .epoch = 2, .step = 7, .stride = 3};
  Worker trainer = server.attach_trainer(position);
  CHECK(server.hello().trainer == position);
  CHECK(read_plan(trainer.plan()) == plan_with({}));
}

TEST_CASE("a trainer does not attach to a service without a plan") {
  Server server;
  server.welcome.plan.clear();
  CHECK_THROWS_AS(server.attach_trainer(), WorkerError);
}

TEST_CASE("a trainer returns batches in any order, each once") {
  Server server;
  Worker trainer = server.attach_trainer();
  server.send(server.step(1, 0));
  server.send(server.step(2, 1));
  auto first = trainer.next(), second = trainer.next();
  REQUIRE(second.has_value());
  CHECK(second->step() == 1);
  trainer.done(*second);
  CHECK(server.receive<Done>().batch == BatchId{2});
  server.send(server.step(3, 2));
  auto third = trainer.next();
  REQUIRE(third.has_value());
  trainer.done(*first);
  CHECK(server.receive<Done>().batch == BatchId{1});
  CHECK_THROWS_AS(trainer.done(*first), std::logic_error);
}

TEST_CASE("a trainer takes the batches that it has received before it reports the loss") {
  Server server;
  Worker trainer = server.attach_trainer();
  server.send(server.step(1, 0));
  server.send(server.step(2, 1));
  server.send(Refused{.code = "data", .message = "a.wav: damaged", .details = R"({"step":2})"});
  server.hang_up();
  CHECK(trainer.next()->step() == 0);
  CHECK(trainer.next()->step() == 1);
  try {
    (void)trainer.next();
    FAIL("no error");
  } catch (const WorkerError& error) {
    CHECK(error.code() == "data");
    CHECK(error.details() == R"({"step":2})");
    CHECK(std::string(error.what()).find("a.wav: damaged") != std::string::npos);
  }
}

TEST_CASE("a trainer that returns a batch after its server's end receives what was sent before") {
  const bool refused = GENERATE(false, true);
  Server server;
  Worker trainer = server.attach_trainer();
  server.send(server.step(1, 0));
  auto first = trainer.next();
  REQUIRE(first.has_value());
  server.send(server.step(2, 1));
  if (refused)
    server.send(Refused{.code = "data", .message = "a.wav: damaged"});
  else
    server.send(Bye{});
  server.hang_up();
  trainer.done(*first);  // cannot be sent
  const auto second = trainer.next();
  REQUIRE(second.has_value());
  CHECK(second->step() == 1);
  if (refused)
    CHECK(throws_lost(trainer, "a.wav: damaged"));
  else
    CHECK_FALSE(trainer.next().has_value());
  CHECK(trainer.ended());
}

TEST_CASE("the batches of a trainer stay readable after the loss of its server") {
  Server server;
  Worker trainer = server.attach_trainer();
  server.slab(1)[0] = std::byte{17};
  server.send(server.step(1, 0));
  auto batch = trainer.next();
  server.hang_up();
  CHECK_THROWS_AS(trainer.next(), WorkerError);
  CHECK(batch->data()[0] == std::byte{17});
}

TEST_CASE("a server that skips or repeats a step is left") {
  for (const std::uint64_t wrong : {0, 2}) {
    Server server;
    Worker trainer = server.attach_trainer();
    server.send(server.step(1, 0));
    server.send(server.step(2, wrong));
    CHECK(trainer.next()->step() == 0);
    CHECK(throws_lost(trainer, "skipped or repeated"));
  }
}

TEST_CASE("a batch without a step is no batch for a trainer") {
  Server server;
  Worker trainer = server.attach_trainer();
  server.send(example_batch(1));
  CHECK(throws_lost(trainer, "step"));
}

TEST_CASE("the steps of a stride have one remainder in each epoch") {
  StepOrder order({.epoch = 3, .step = 5, .stride = 4}, steps);
  CHECK(order.accept(at(3, 5)));
  CHECK_FALSE(order.accept(at(4, 1)));  // before the end of epoch 3
  CHECK(order.accept(at(3, 9)));
  CHECK_FALSE(order.accept(at(4, 3)));
  CHECK_FALSE(order.accept(at(3, 9)));
  CHECK(order.accept(at(4, 1)));
}

TEST_CASE("a trainer that starts behind the last step starts with the next epoch") {
  StepOrder order({.epoch = 3, .step = 13, .stride = 4}, steps);
  CHECK(order.accept(at(4, 1)));
  StepOrder early({.epoch = 3, .step = 5, .stride = 4}, steps);
  CHECK_FALSE(early.accept(at(4, 1)));
}

TEST_CASE("companions follow the control arrays of a slab") {
  Server server(FakeService::Over::path, companions);
  server.welcome.slab_bytes = 4096;
  Worker trainer = server.attach_trainer();
  HandedBatch batch = server.step(1, 0);
  const SlabLayout layout = layout_of({.rows = batch.rows,
                                       .width = batch.width,
                                       .element = Element::s16,
                                       .companions = layout_of(companions, batch.rows, 3).bytes});
  server.slab(1)[layout.companions] = std::byte{5};
  server.slab(1)[layout.companions + slab_alignment] = std::byte{6};
  server.send(batch);
  const auto got = trainer.next();
  REQUIRE(got->companions().size() == 2);
  CHECK(got->companions()[0].size() == 2 * 3);
  CHECK(got->companions()[0][0] == std::byte{5});
  CHECK(got->companions()[1].size() == 2 * 3 * 2 * 2);
  CHECK(got->companions()[1][0] == std::byte{6});
}

TEST_CASE("companions follow the padded tensor of a message") {
  Server server(FakeService::Over::tcp, companions);
  Worker trainer = server.attach_trainer();
  std::vector<std::byte> sent(3 * slab_alignment);
  sent[0] = std::byte{4};
  sent[slab_alignment] = std::byte{5};
  sent[2 * slab_alignment] = std::byte{6};
  HandedBatch batch = server.step(1, 0);
  batch.tensor = sent;
  server.send(batch);
  const auto got = trainer.next();
  CHECK(got->data()[0] == std::byte{4});
  CHECK(got->companions()[0][0] == std::byte{5});
  CHECK(got->companions()[1][0] == std::byte{6});
  batch.id = BatchId{2};
  batch.step = 1;
  batch.tensor = Bytes(sent).first(2 * slab_alignment);
  server.send(batch);
  CHECK(throws_lost(trainer, "does not match"));
}

TEST_CASE("a trainer holds at most as many batches as it has credits") {
  Server server;
  Worker trainer = server.attach_trainer({}, 1);
  server.send(server.step(1, 0));
  server.send(server.step(2, 1));
  CHECK(trainer.next()->step() == 0);
  CHECK(throws_lost(trainer, "more batches than it has credits"));
}

TEST_CASE("a trainer with an impossible position is a wrong argument") {
  for (const TrainerHello& wrong : {TrainerHello{.rank = 1, .world = 1}, TrainerHello{.stride = 0}})
    CHECK_THROWS_AS(Worker("unix:/nowhere", {.trainer = wrong}), std::invalid_argument);
  CHECK_THROWS_AS(Worker("unix:/nowhere", {.watch = true, .trainer = TrainerHello{}}),
                  std::invalid_argument);
}
