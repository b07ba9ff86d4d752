// SPDX-License-Identifier: Apache-2.0
#include "training/filling/epochs.h"

#include <catch2/catch.hpp>
#include <future>
#include <latch>
#include <stdexcept>
#include <thread>

#include "tests/training/filling/loading.h"

using namespace millrace;
using namespace millrace::test;
using training::Epochs;
using training::Loader;

namespace {

struct Counted {
  Counted() {
    plan->on_epoch = [this](std::uint64_t epoch) {
      distributed[epoch].fetch_add(1);
      if (epoch == 9) throw std::runtime_error("nine");
    };
  }
  Eight eight;
  std::shared_ptr<ListedPlan> plan = std::make_shared<ListedPlan>(*eight.catalog, 3, eight.spec);
  std::array<std::atomic<int>, 10> distributed{};
};

}  // namespace

TEST_CASE("without a thread an epoch is distributed by its reader, once") {
  Counted counted;
  Epochs epochs(counted.plan);
  CHECK(epochs.get(0) == epochs.get(0));
  CHECK(counted.distributed[0] == 1);
  epochs.prepare(1);
  CHECK(counted.distributed[1] == 0);
}

TEST_CASE("the thread distributes an epoch once, also if it was distributed before the thread") {
  Counted counted;
  Epochs epochs(counted.plan);
  const auto first = epochs.get(0);
  epochs.start();
  CHECK(epochs.get(0) == first);
  epochs.prepare(1);
  const auto second = epochs.get(1);
  CHECK(second != first);
  epochs.stop();
  CHECK(epochs.get(1) == second);
  CHECK(counted.distributed[0] == 1);
  CHECK(counted.distributed[1] == 1);
}

TEST_CASE("the wait for a distribution has a limit") {
  Counted counted;
  std::latch distributes(1), goes_on(1);
  counted.plan->on_epoch = [&](std::uint64_t) {
    distributes.count_down();
    goes_on.wait();
  };
  Epochs epochs(counted.plan);
  epochs.start();
  epochs.prepare(1);
  distributes.wait();
  CHECK_FALSE(epochs.stop_until(Time::min()));
  goes_on.count_down();
  CHECK(epochs.stop_until(Time::max()));
  CHECK(epochs.stop_until(Time::min()));  // it is stopped
}

TEST_CASE("a stop ends the distribution that is under way, and a later call distributes again") {
  Counted counted;
  std::latch distributes(1);
  std::atomic<bool> ends = false;
  counted.plan->on_poll = [&](const training::Poll& poll) {
    distributes.count_down(ends ? 0 : 1);
    while (!ends) poll();
  };
  Epochs epochs(counted.plan);
  epochs.start();
  epochs.prepare(1);
  distributes.wait();
  epochs.stop();
  ends = true;
  epochs.start();
  CHECK(epochs.get(1));
  CHECK(counted.distributed[1] == 2);
}

TEST_CASE("a stop ends the wait for an epoch") {
  Counted counted;
  std::latch distributes(1);
  counted.plan->on_poll = [&](const training::Poll& poll) {
    distributes.count_down();
    for (;;) poll();
  };
  Epochs epochs(counted.plan);
  epochs.start();
  std::future<void> ended = std::async(std::launch::async, [&] { (void)epochs.get(1); });
  distributes.wait();
  epochs.stop();
  CHECK(ended.wait_for(patience) == std::future_status::ready);
  CHECK_THROWS_AS(ended.get(), std::future_error);
}

TEST_CASE("who waits for an epoch can leave the wait, with or without the thread") {
  struct Left {};
  Counted counted;
  std::atomic<bool> ends = false;
  counted.plan->on_poll = [&](const training::Poll& poll) {
    while (!ends) poll();
  };
  const auto leave = [] { throw Left(); };
  Epochs epochs(counted.plan);
  CHECK_THROWS_AS(epochs.get(0, leave), Left);
  epochs.start();
  CHECK_THROWS_AS(epochs.get(0, leave), Left);
  ends = true;
  CHECK(epochs.get(0));
  CHECK(counted.distributed[0] == 2);  // the thread had gone on
}

TEST_CASE("a loader that is left does not wait for the next epoch") {
  Eight eight;
  const auto plan = std::make_shared<ListedPlan>(*eight.catalog, 3, eight.spec);
  std::atomic<bool> endless = false;
  std::latch distributes(1);
  plan->on_epoch = [&](std::uint64_t epoch) { endless = epoch == 1; };
  plan->on_poll = [&](const training::Poll& poll) {
    if (endless) distributes.count_down();
    while (endless) poll();
  };
  Loader loader(eight.catalog, plan, {.threads = 1});
  REQUIRE(next_copy(loader).has_value());
  distributes.wait();
  loader.seek({0, 2});
  CHECK(next_copy(loader)->step == 2);
  endless = false;
}

TEST_CASE("only the last two epochs are kept, and those in use") {
  Counted counted;
  Epochs epochs(counted.plan);
  const auto used = epochs.get(0);
  for (std::uint64_t epoch = 1; epoch < 5; ++epoch) (void)epochs.get(epoch);
  CHECK(epochs.get(0) == used);
  (void)epochs.get(4);
  (void)epochs.get(1);
  CHECK(counted.distributed[0] == 1);
  CHECK(counted.distributed[1] == 2);
  CHECK(counted.distributed[4] == 1);
}

TEST_CASE("an epoch that cannot be distributed is the exception of get()") {
  Counted counted;
  Epochs epochs(counted.plan);
  CHECK_THROWS_WITH(epochs.get(9), "nine");
  epochs.start();
  epochs.prepare(9);
  CHECK_THROWS_WITH(epochs.get(9), "nine");
  CHECK(epochs.get(0));
}

TEST_CASE("the next epoch is distributed by another thread during the epoch before") {
  Eight eight;
  for (const std::uint32_t threads : {0, 1, 3}) {
    const auto plan = std::make_shared<ListedPlan>(*eight.catalog, 3, eight.spec);
    std::latch begun(1), release(1);
    std::atomic<std::thread::id> distributing;
    plan->on_epoch = [&](std::uint64_t epoch) {
      if (epoch != 1) return;
      distributing = std::this_thread::get_id();
      begun.count_down();
      release.wait();
    };
    Loader loader(eight.catalog, plan, {.threads = threads});
    REQUIRE(next_copy(loader).has_value());
    begun.wait();
    CHECK(distributing.load() != std::this_thread::get_id());
    // Steps of this epoch do not wait for it.
    for (std::size_t step = 1; step < plan->batches().size(); ++step)
      REQUIRE(next_copy(loader).has_value());
    CHECK_FALSE(next_copy(loader).has_value());
    release.count_down();
    CHECK(next_copy(loader).has_value());
  }
}

TEST_CASE("the number of steps is known before the first batch and at the end of an epoch") {
  Counted counted;
  Loader loader(counted.eight.catalog, counted.plan, {.threads = 1});
  CHECK(loader.steps() == counted.plan->batches().size());
  (void)read_epoch(loader);
  CHECK(loader.steps() == counted.plan->batches().size());
  CHECK(next_copy(loader)->epoch == 1);
  loader.stop();
  CHECK(counted.distributed[0] == 1);
  CHECK(counted.distributed[1] == 1);
}
