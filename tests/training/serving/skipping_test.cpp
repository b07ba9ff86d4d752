// SPDX-License-Identifier: Apache-2.0
// Servers that skip failed streams, lost states, and epochs without a step.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/training/serving/plan_server.h"

using namespace millrace;
using namespace millrace::test;
using training::DataFault;
using training::Rank;
using training::ReadError;

TEST_CASE("a server skips failed streams, counts them, and lists them in their batch") {
  Twelve twelve;
  twelve.epochs = 2;
  const std::size_t clean = twelve.epoch().size() + twelve.epoch({}, 1).size();
  twelve.catalog->on_open = cannot_open(5, "five.wav: gone");
  twelve.skip_failed = true;
  PlanServer server(twelve.served());
  for (const std::string& url : {server.url(), server.tcp_url()}) {
    Worker trainer = attach(url);
    std::size_t steps = 0, failures = 0;
    while (auto batch = trainer.next_until(soon())) {
      if (!batch->failed().empty()) ++failures;
      CHECK(batch->rows() == 4);
      for (const auto& row : batch->framed()) CHECK(row.stream != StreamId(5));
      ++steps;
      trainer.done(*batch);
    }
    CHECK(trainer.ended());
    CHECK(steps == clean);
    CHECK(failures == 2);  // once per epoch
    CHECK(server.stats.errors[DataFault::read].value() == 2);
  }
}

TEST_CASE(
    "a skipped stream stays so for a trainer that attaches again, unless its states are lost") {
  Twelve twelve;
  twelve.epochs = 1;
  std::atomic<bool> gone{true};
  twelve.catalog->on_open = [&](std::uint64_t stream) -> Result<void, ReadError> {
    if (stream == 5 && gone) return ReadError{DataFault::read, "five.wav: busy"};
    return {};
  };
  twelve.skip_failed = true;
  PlanServer server(twelve.served());
  const auto is_five = [](const auto& row) { return row.stream == StreamId(5); };
  for (const std::string& url : {server.url(), server.tcp_url()}) {
    gone = true;
    std::uint64_t step = 0;
    {
      Worker trainer = attach(url);
      for (bool failed = false; !failed; ++step) {
        auto batch = trainer.next_until(soon());
        REQUIRE(batch);
        failed = !batch->failed().empty();
        trainer.done(*batch);
      }
    }
    gone = false;
    for (const std::uint64_t again : {step, step + 1}) {
      attach(url, {.plan_only = true});  // at the begin of the epoch
      Worker trainer = attach(url, {.step = again});
      for (const LoadedBatch& batch : take(trainer, 100))
        CHECK(std::ranges::none_of(batch.framed, is_five));
      CHECK(trainer.ended());
    }
    Worker trainer = attach(url, {.step = step, .resets = true});
    const auto first = take(trainer, 1);
    REQUIRE(first.size() == 1);
    CHECK(std::ranges::any_of(first[0].framed, is_five));
    CHECK(std::ranges::count(first[0].reset, 1) == 4);
  }
}

TEST_CASE(
    "a stream with more marker rows than a slab has room for is skipped, wherever a trainer "
    "begins") {
  Twelve twelve;
  twelve.epochs = 1;
  twelve.catalog->add(with_flushes(5000));
  twelve.skip_failed = true;
  PlanServer server(twelve.served());
  std::vector<LoadedBatch> all;
  for (std::uint64_t step = 0; step == 0 || step < all.size(); ++step) {
    Worker trainer = attach(server.url(), {.step = step});
    std::size_t failures = 0;
    for (std::uint64_t at = step; auto batch = trainer.next_until(soon()); ++at) {
      failures += batch->failed().empty() ? 0 : 1;
      CHECK(batch->marks().size() <= 4);
      for (const auto& row : batch->framed()) CHECK(row.stream != StreamId(12));
      if (step == 0) all.push_back(copy_of(*batch));
      CHECK(copy_of(*batch) == all[at]);
      trainer.done(*batch);
    }
    CHECK(trainer.ended());
    CHECK(failures <= 1);
    if (step == 0) CHECK(failures == 1);
  }
}

TEST_CASE("a stream with a pause of many marker rows is sent, also on many slots") {
  Twelve twelve;
  twelve.epochs = 1;
  twelve.options.slots = 64;
  for (int i = 0; i < 64; ++i) twelve.catalog->add(with_flushes(256));
  twelve.skip_failed = true;
  PlanServer server(twelve.served());
  Worker trainer = attach(server.url());
  std::size_t marks = 0;
  while (auto batch = trainer.next_until(soon())) {
    CHECK(batch->failed().empty());
    marks += batch->marks().size();
    trainer.done(*batch);
  }
  CHECK(trainer.ended());
  CHECK(marks >= 64 * 255);
}

TEST_CASE("a server that skips sends a stream whose name or meta is too long, without them") {
  Twelve twelve;
  twelve.epochs = 1;
  const auto all = twelve.epoch();
  twelve.catalog->on_meta = [](std::uint64_t stream) {
    return stream == 5 ? std::string(worker_protocol::max_meta + 1, 'x') : "{}";
  };
  twelve.skip_failed = true;
  PlanServer server(twelve.served());
  Worker trainer = attach(server.url());
  for (const LoadedBatch& expected : all) {
    auto batch = trainer.next_until(soon());
    REQUIRE(batch);
    CHECK(copy_of(*batch) == expected);
    CHECK(batch->failed().empty());
    for (const auto& stream : batch->opened())
      CHECK(stream.options == (stream.stream == StreamId(5) ? "" : "{}"));
    trainer.done(*batch);
  }
}

TEST_CASE("of the texts of a stream that is sent, only what is too long is shortened") {
  Twelve twelve;
  const auto all = [&](std::size_t count) {
    std::vector<worker_protocol::OpenedStream> opened(count);
    for (std::size_t i = 0; i < count; ++i) opened[i].stream = StreamId(i);
    CHECK(training::add_short_texts(*twelve.catalog, opened).size() == 1);
    return opened.back();
  };
  twelve.catalog->on_meta = [](std::uint64_t) { return "{}"; };
  twelve.catalog->on_name = [](std::uint64_t) {
    return std::string(worker_protocol::max_catalog_name + 1, 'x');
  };
  CHECK(all(1).name.size() == 256);
  CHECK(all(1).options == "{}");
  const std::string name(worker_protocol::max_catalog_name, 'x');
  twelve.catalog->on_name = [&](std::uint64_t) { return name; };
  twelve.catalog->on_meta = [](std::uint64_t) {
    return std::string(worker_protocol::max_meta + 1, 'x');
  };
  CHECK(all(1).name == name);
  CHECK(all(1).options.empty());
  twelve.catalog->on_meta = [](std::uint64_t) {
    return std::string(worker_protocol::max_meta, 'x');
  };
  CHECK(all(32).name == name);  // together they have more than 32 MiB
  CHECK(all(32).options.empty());
}

TEST_CASE("the name of a stream that is sent need not be UTF-8") {
  Twelve twelve;
  twelve.catalog->on_name = [](std::uint64_t) { return "gr\xf6"; };
  PlanServer server(twelve.served());
  Worker trainer = attach(server.url());
  const auto batch = trainer.next_until(soon());
  REQUIRE(batch);
  REQUIRE_FALSE(batch->opened().empty());
  CHECK(batch->opened().front().name == "gr\xf6");
}

TEST_CASE("a trainer that has lost its states gets RESET in its first rows") {
  Twelve twelve;
  twelve.epochs = 1;
  PlanServer server(twelve.served());
  for (const bool resets : {false, true}) {
    const Rank rank{resets ? 1u : 0u, 2};
    const auto all = twelve.epoch(rank);
    Worker trainer =
        attach(server.url(), {.rank = rank.rank, .world = 2, .step = 3, .resets = resets});
    const auto batches = take(trainer, 2);
    REQUIRE(batches.size() == 2);
    for (std::size_t at = 0; at < batches[0].framed.size(); ++at)
      CHECK(batches[0].reset[at] == (resets ? 1 : all[3].reset[at]));
    CHECK(batches[1] == all[4]);
  }
}

TEST_CASE("an epoch without a step refuses the trainer as a wrong plan") {
  Twelve twelve;
  twelve.options = {.mode = training::PlanMode::stateless, .chunk = {}, .rows = 6};
  PlanServer server(twelve.served());
  const WorkerError error = error_of([&] { attach(server.url(), {.rank = 0, .world = 3}); });
  CHECK(error.code() == "plan");
  CHECK_THAT(error.what(), Catch::Contains("epoch 0 has no step: it has 2 batches for world = 3"));
}
