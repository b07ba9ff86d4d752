// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <random>
#include <set>
#include <thread>

#include "base/queue.h"
#include "tests/training/filling/loading.h"

using namespace millrace;
using namespace millrace::test;
using training::Loader;

namespace {

using Catch::Matchers::Contains;

WorkerBatch next_batch(Loader& loader) {
  auto batch = take(loader);
  REQUIRE(batch.has_value());
  return std::move(*batch);
}

}  // namespace

TEST_CASE("a batch does not change while it is kept") {
  Eight eight(300);
  for (const std::uint32_t threads : {0, 1, 3}) {
    auto loader =
        eight.loader({.threads = threads, .prefetch = 3, .buffers = 7, .dtype = Element::s16});
    std::mt19937 random(threads);
    std::vector<std::pair<WorkerBatch, LoadedBatch>> kept;
    for (int i = 0; i < 300; ++i) {
      auto batch = take(loader);
      if (!batch) continue;  // the end of an epoch
      LoadedBatch copy = copy_of(*batch);
      kept.emplace_back(std::move(*batch), std::move(copy));
      for (const auto& [now, then] : kept) REQUIRE(copy_of(now) == then);
      while (kept.size() == 7 || (kept.size() > 1 && random() % 2 == 0)) {
        const auto at = kept.begin() + static_cast<std::ptrdiff_t>(random() % kept.size());
        loader.give_back(at->first);
        kept.erase(at);
      }
    }
  }
}

TEST_CASE("if all buffers are kept, the error names the option") {
  Eight eight;
  for (const std::uint32_t threads : {0, 1, 2}) {
    auto loader = eight.loader({.threads = threads, .buffers = 2});
    WorkerBatch first = next_batch(loader), second = next_batch(loader);
    CHECK_THROWS_AS(loader.next_until(soon()), std::length_error);
    CHECK_THROWS_WITH(
        loader.next_until(soon()),
        Contains("all 2 buffers are in batches that are kept") && Contains("`buffers`"));
    loader.give_back(first);
    CHECK(next_batch(loader).step() == 2);
    CHECK(loader.stats().kept == 2);
    CHECK_THROWS_AS(loader.next_until(soon()), std::length_error);
    loader.seek({0, 0});
    CHECK_THROWS_AS(loader.next_until(soon()), std::length_error);
    loader.give_back(second);
    CHECK(next_batch(loader).step() == 0);
  }
}

TEST_CASE("the end of an epoch needs no buffer") {
  Eight eight;
  for (const std::uint32_t threads : {0, 1, 2}) {
    const auto steps = eight.plan()->epoch(0)->steps();
    auto loader = eight.loader({.threads = threads, .buffers = static_cast<std::uint32_t>(steps)});
    std::vector<WorkerBatch> kept;
    while (kept.size() < steps) kept.push_back(next_batch(loader));
    CHECK_FALSE(take(loader).has_value());
    CHECK(loader.at_end());
    CHECK_THROWS_AS(loader.next_until(soon()), std::length_error);
  }
}

TEST_CASE("other threads give batches back, in any order") {
  Eight eight(300);
  auto alone = eight.loader({.threads = 0, .dtype = Element::s16});
  const auto expected = read_epoch(alone);
  auto loader = eight.loader({.threads = 2, .buffers = 4, .dtype = Element::s16});
  Queue<WorkerBatch> used(4);
  std::jthread other([&] {
    std::vector<WorkerBatch> held;
    while (auto batch = used.pop_until(Time::max())) {
      held.push_back(std::move(*batch));
      if (held.size() < 2) continue;
      for (; !held.empty(); held.pop_back()) loader.give_back(held.back());
    }
    for (WorkerBatch& batch : held) loader.give_back(batch);
  });
  std::size_t step = 0;
  for (;;) {
    std::optional<WorkerBatch> batch;
    try {
      batch = take(loader);
    } catch (const std::length_error&) {
      std::this_thread::yield();  // the other thread has not come to it yet
      continue;
    }
    if (!batch) break;
    REQUIRE(copy_of(*batch) == expected.at(step++));
    REQUIRE(used.try_push(std::move(*batch)) <= Queue<WorkerBatch>::Pushed::more);
  }
  used.close();
  other.join();
  CHECK(step == expected.size());
  CHECK(loader.stats().kept == 0);
}

TEST_CASE("seek() leaves the batches that are kept as they are") {
  Eight eight(300);
  auto loader = eight.loader({.threads = 2, .buffers = 4, .dtype = Element::s16});
  std::vector<std::pair<WorkerBatch, LoadedBatch>> kept;
  for (int i = 0; i < 3; ++i) {
    WorkerBatch batch = next_batch(loader);
    LoadedBatch copy = copy_of(batch);
    kept.emplace_back(std::move(batch), std::move(copy));
    loader.seek({0, static_cast<std::uint64_t>(7 * i)});
  }
  for (int i = 0; i < 20; ++i) (void)next_copy(loader);
  for (const auto& [now, then] : kept) CHECK(copy_of(now) == then);
  for (auto& [batch, copy] : kept) loader.give_back(batch);
  CHECK(loader.stats().kept == 0);
}

TEST_CASE("a batch that is given back is used for a later batch") {
  Eight eight(300);
  auto loader = eight.loader({.threads = 0, .buffers = 64});
  std::set<const std::byte*> used;
  for (int i = 0; i < 50; ++i) {
    WorkerBatch batch = next_batch(loader);
    used.insert(batch.data().data());
    loader.give_back(batch);
  }
  CHECK(used.size() == 1);
}
