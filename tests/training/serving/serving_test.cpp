// SPDX-License-Identifier: Apache-2.0
// Trainers of the worker library and a server of batches in one process.
#include <atomic>
#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/training/serving/plan_server.h"
#include "workers/plan/plan_text.h"

using namespace millrace;
using namespace millrace::test;
using training::DataFault;
using training::Rank;

namespace {

std::vector<LoadedBatch> from(std::vector<LoadedBatch> batches, std::size_t first,
                              std::size_t stride = 1) {
  std::vector<LoadedBatch> some;
  for (std::size_t i = first; i < batches.size(); i += stride)
    some.push_back(std::move(batches[i]));
  return some;
}

}  // namespace

TEST_CASE("a trainer receives the batches of a loader, in slabs and over TCP") {
  Twelve twelve;
  twelve.epochs = 2;
  for (const Element dtype : {Element::s16, Element::f32}) {
    twelve.dtype = dtype;
    PlanServer server(twelve.served());
    for (const std::string& url : {server.url(), server.tcp_url()}) {
      Worker trainer = attach(url);
      auto expected = twelve.epoch();
      for (LoadedBatch& batch : twelve.epoch({}, 1)) expected.push_back(std::move(batch));
      CHECK(take(trainer, 1000) == expected);
      CHECK(trainer.ended());  // after Bye
    }
  }
}

TEST_CASE("the ranks of a world receive their parts of each step") {
  Twelve twelve;
  twelve.epochs = 1;
  PlanServer server(twelve.served());
  Worker first = attach(server.url(), {.rank = 0, .world = 2});
  Worker second = attach(server.tcp_url(), {.rank = 1, .world = 2});
  CHECK(take(first, 1000) == twelve.epoch({0, 2}));
  CHECK(take(second, 1000) == twelve.epoch({1, 2}));
  CHECK(server.stats.batches.value() == 2 * twelve.epoch({0, 2}).size());
}

TEST_CASE("a trainer starts at any step, and two share a rank by a stride") {
  Twelve twelve;
  twelve.epochs = 1;
  PlanServer server(twelve.served());
  const auto all = twelve.epoch();
  REQUIRE(all.size() > 6);
  Worker even = attach(server.url(), {.step = 4, .stride = 2});
  Worker odd = attach(server.url(), {.step = 3, .stride = 2});
  CHECK(take(even, 1000).size() == from(all, 4, 2).size());
  const auto rest = take(odd, 1000);
  REQUIRE(rest.size() == from(all, 3, 2).size());
  CHECK(rest.back().tensor == from(all, 3, 2).back().tensor);
}

TEST_CASE("companions come with their batches, in slabs and over TCP") {
  Twelve twelve;
  twelve.epochs = 1;
  twelve.catalog = std::make_shared<MemoryCatalog>(FrameType{});
  twelve.catalog->set_companions(
      {{.name = "labels", .element = CompanionElement::u8},
       {.name = "third", .element = CompanionElement::s16, .values = 2, .frames_per_entry = 3}});
  for (std::size_t i = 0; i < 6; ++i) {
    const std::size_t frames = 9 + 2 * i;
    MemoryStream stream{.frames = std::vector<std::byte>(2 * frames)};
    stream.companions.emplace_back(frames, std::byte(i + 1));
    stream.companions.emplace_back((frames + 2) / 3 * 4, std::byte(i + 101));
    twelve.catalog->add(std::move(stream));
  }
  PlanServer server(twelve.served());
  for (const std::string& url : {server.url(), server.tcp_url()}) {
    Worker trainer = attach(url);
    CHECK(read_plan(trainer.plan())->companions.size() == 2);
    const auto batches = take(trainer, 1000);
    CHECK(batches == twelve.epoch());
    CHECK(batches.front().companions[0].front() != std::byte{});
  }
}

TEST_CASE("the first batch with a stream has its name") {
  Twelve twelve;
  PlanServer server(twelve.served());
  Worker trainer = attach(server.tcp_url());
  const auto batch = trainer.next();
  REQUIRE(batch->opened().size() == 4);
  for (const auto& stream : batch->opened())
    CHECK(stream.name == twelve.catalog->name(number(stream.stream)));
}

TEST_CASE("without slots, a batch has the name of each of its streams once") {
  Twelve twelve;
  twelve.epochs = 1;
  twelve.options.mode = training::PlanMode::stateless;
  twelve.options.slots = 0;
  twelve.options.rows = 16;
  twelve.options.shuffle = false;
  PlanServer server(twelve.served());
  Worker trainer = attach(server.tcp_url());
  std::size_t repeated = 0;
  while (auto batch = trainer.next_until(soon())) {
    std::set<StreamId> streams, opened;
    for (const auto& row : batch->framed()) streams.insert(row.stream);
    for (const auto& stream : batch->opened()) {
      CHECK(opened.insert(stream.stream).second);
      CHECK(stream.name == twelve.catalog->name(number(stream.stream)));
    }
    CHECK(opened == streams);
    repeated += batch->framed().size() - streams.size();
    trainer.done(*batch);
  }
  CHECK(repeated > 0);
}

TEST_CASE("a batch whose streams have too much meta together is an error of a stream") {
  Twelve twelve;
  twelve.catalog = std::make_shared<MemoryCatalog>(FrameType{});
  for (std::uint64_t i = 0; i < 40; ++i) twelve.catalog->add_numbered(8);
  twelve.options.slots = 40;
  twelve.options.shuffle = false;
  twelve.catalog->on_meta = [](std::uint64_t) {
    return std::string(worker_protocol::max_meta, 'x');
  };
  PlanServer server(twelve.served());
  Worker trainer = attach(server.url());
  const WorkerError error = error_of([&] { take(trainer, 1); });
  CHECK(error.code() == "data");
  CHECK_THAT(error.details(), Catch::Contains("the names and meta of all its streams"));
}

TEST_CASE("a kept batch is not written again while others come and go") {
  Twelve twelve;
  PlanServer server(twelve.served());
  Worker trainer = attach(server.url(), {}, 2);
  const auto kept = trainer.next();
  const LoadedBatch before = copy_of(*kept);
  CHECK(take(trainer, 50).size() == 50);
  CHECK(copy_of(*kept) == before);
}

TEST_CASE("a rank in use is refused, and is free as soon as its trainer has left or is lost") {
  Twelve twelve;
  PlanServer server(twelve.served());
  {
    Worker trainer = attach(server.url());
    CHECK(error_code([&] { attach(server.url()); }) == "conflict");
    CHECK(error_code([&] { attach(server.url(), {.rank = 1, .world = 2}); }) == "conflict");
    trainer.bye();
    while (trainer.next_until(soon())) {
    }
    CHECK(trainer.ended());
  }
  CHECK_NOTHROW(attach(server.url()));
}

TEST_CASE("a world that does not divide the slots is refused by name") {
  Twelve twelve;
  PlanServer server(twelve.served());
  const WorkerError error = error_of([&] { attach(server.url(), {.rank = 0, .world = 3}); });
  CHECK(error.code() == "plan");
  CHECK_THAT(error.what(), Catch::Contains("world"));
}

TEST_CASE("a worker without a rank is refused") {
  Twelve twelve;
  PlanServer server(twelve.served());
  CHECK(error_code([&] { Worker(server.url(), {.name = "worker"}); }) == "pipeline");
}

TEST_CASE(
    "a trainer whose batches exceed the budget is refused, with another code if they never fit") {
  Twelve twelve;
  PlanServer server(twelve.served(), 1'000'000);
  Worker first = attach(server.url(), {.rank = 0, .world = 2}, 30);
  for (const bool plan_only : {false, true})
    CHECK(error_code([&] {
            attach(server.url(), {.rank = 1, .world = 2, .plan_only = plan_only}, 30);
          }) == "no_room");
  CHECK(error_code([&] { attach(server.url(), {.rank = 1, .world = 2}, 1000); }) == "plan");
}

TEST_CASE("a trainer that asks for the plan only gets no batch, and its rank stays free") {
  Twelve twelve;
  const std::size_t steps = twelve.epoch().size();
  std::atomic<int> opened = 0;
  twelve.catalog->on_open = [&](std::uint64_t) -> Read {
    ++opened;
    return {};
  };
  PlanServer server(twelve.served());
  for (const std::string& url : {server.url(), server.tcp_url()}) {
    Worker asks = attach(url, {.plan_only = true});
    CHECK(read_plan(asks.plan())->steps == steps);
    CHECK_FALSE(asks.next_until(soon()));
    CHECK(asks.ended());
    CHECK_NOTHROW(attach(url, {.plan_only = true}));
  }
  CHECK(server.stats.trainers.value() == 0);
  CHECK(opened == 0);
}

TEST_CASE("a stream whose length is not known refuses the trainer as an error of the stream") {
  Twelve twelve;
  twelve.options.frames = [](std::uint64_t epoch, std::uint64_t stream, std::uint32_t) {
    if (epoch == 1 && stream == 4) throw training::LengthFailure("no luck", epoch, stream, "four");
    return std::uint64_t{9};
  };
  PlanServer server(twelve.served());
  Worker trainer = attach(server.url());
  CHECK(error_of([&] { take(trainer, 1000); }).code() == "data");
  const WorkerError error = error_of([&] { attach(server.url(), {.epoch = 1}); });
  CHECK(error.code() == "data");
  CHECK(error.details() == R"({"stream":4,"name":"four","message":"no luck","fault":"function",)"
                           R"("epoch":1,"step":0})");
}

TEST_CASE("a stream that cannot be read ends the trainer at its step, again after a retry") {
  Twelve twelve;
  twelve.catalog->on_read = four_is_damaged;
  PlanServer server(twelve.served());
  std::uint64_t next = 0;
  for (int attempt = 0; attempt < 3; ++attempt) {
    Worker trainer = attach(server.url(), {.step = next});
    const WorkerError error = error_of([&] {
      for (;;) next = take(trainer, 1).at(0).step + 1;
    });
    CHECK(error.code() == "data");
    CHECK(error.details() == R"({"stream":4,"name":"stream 4","message":"four.wav: damaged",)"
                             R"("fault":"read","epoch":0,"step":)" +
                                 std::to_string(next) + "}");
  }
  CHECK(server.stats.errors[DataFault::read].value() == 3);
}

TEST_CASE("a stream whose meta is too long for a message is the one that the error names") {
  for (std::uint64_t wrong = 0; wrong < 12; ++wrong) {
    Twelve twelve;
    twelve.catalog->on_meta = [wrong](std::uint64_t stream) {
      return stream == wrong ? std::string(worker_protocol::max_meta + 1, 'x') : "{}";
    };
    PlanServer server(twelve.served());
    Worker trainer = attach(server.url());
    const WorkerError error = error_of([&] { take(trainer, 1000); });
    CHECK(error.code() == "data");
    const std::string number = std::to_string(wrong);
    CHECK(error.details().starts_with(R"({"stream":)" + number + R"(,"name":"stream )" + number +
                                      '"'));
  }
}

TEST_CASE("a stream with more marker rows than a slab has room for is an error at its step") {
  Twelve twelve;
  twelve.catalog->add(with_flushes(5000));
  PlanServer server(twelve.served());
  for (int attempt = 0; attempt < 2; ++attempt) {
    Worker trainer = attach(server.url());
    const WorkerError error = error_of([&] { take(trainer, 1000); });
    CHECK(error.code() == "data");
    CHECK_THAT(error.details(), Catch::StartsWith(R"({"stream":12,"name":"stream 12",)") &&
                                    Catch::Contains("marker rows"));
  }
}

TEST_CASE("a server that stops sends Bye") {
  Twelve twelve;
  PlanServer server(twelve.served());
  Worker trainer = attach(server.url());
  CHECK(take(trainer, 5).size() == 5);
  server.stop();
  while (trainer.next_until(soon())) {
  }
  CHECK(trainer.ended());
  CHECK(error_code([&] { attach(server.url()); }) == "stopping");
}

TEST_CASE("a trainer that starts after the last epoch gets Bye at once") {
  Twelve twelve;
  twelve.epochs = 2;
  PlanServer server(twelve.served());
  Worker trainer = attach(server.url(), {.epoch = 1, .step = 1000});
  CHECK(take(trainer, 1).empty());
  CHECK(trainer.ended());
  Worker later = attach(server.url(), {.epoch = 2});
  CHECK(take(later, 1).empty());
  CHECK(later.ended());
}
