// SPDX-License-Identifier: Apache-2.0
#include "training/filling/loader.h"

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <semaphore>
#include <thread>

#include "tests/support/sampled.h"
#include "tests/training/filling/loading.h"

using namespace millrace;
using namespace millrace::test;
using training::Loader;
using training::LoaderSettings;
using training::PlanPosition;

namespace {

// The values that the tensor must have by the plan and the catalog: s16, no columns before bodies.
std::vector<std::int16_t> expected_tensor(const MemoryCatalog& catalog,
                                          const training::PlannedBatch& batch) {
  std::vector<std::int16_t> values(std::size_t{batch.rows} * batch.width);
  for (std::size_t row = 0; row < batch.framed.size(); ++row) {
    const auto& planned = batch.framed[row];
    const auto frames = values_of<std::int16_t>(catalog.streams()[planned.stream].frames);
    const std::uint64_t begin = planned.frame - planned.row.left;
    std::copy_n(frames.begin() + static_cast<std::ptrdiff_t>(begin), planned.row.window(),
                values.begin() + static_cast<std::ptrdiff_t>(row * batch.width));
  }
  return values;
}

const LoaderSettings s16{.dtype = Element::s16};

}  // namespace

TEST_CASE("a batch has the rows of the plan, then padding rows, and all of their controls") {
  Eight eight;
  eight.spec = {.size = 4, .left = 2, .right = 1};
  const ListedPlan plan(*eight.catalog, 3, eight.spec);
  // The windows begin at column 0.
  Loader loader(eight.catalog, eight.plan(), s16);
  std::size_t padding = 0;
  for (const auto& planned : plan.batches()) {
    const auto batch = next_copy(loader);
    REQUIRE(batch.has_value());
    CHECK(batch->step == planned.step);
    CHECK(values_of<std::int16_t>(batch->tensor) == expected_tensor(*eight.catalog, planned));
    REQUIRE(batch->framed.size() == planned.framed.size());
    REQUIRE(batch->slot.size() == planned.rows + planned.marks.size());
    for (std::size_t i = 0; i < planned.rows; ++i) {
      const bool framed = i < planned.framed.size();
      padding += !framed;
      const training::PlannedRow row =
          framed ? planned.framed[i] : training::PlannedRow{.slot = 3, .row = {}};
      CHECK(batch->slot[i] == static_cast<std::int32_t>(row.slot));
      CHECK(batch->left[i] == static_cast<std::int32_t>(row.row.left));
      CHECK(batch->size[i] == static_cast<std::int32_t>(row.row.size));
      CHECK(batch->right[i] == static_cast<std::int32_t>(row.row.right));
      CHECK(batch->flags[i] == row.row.flags);
      CHECK(batch->reset[i] == row.row.is(flag::reset));
      if (!framed) continue;
      CHECK(number(batch->framed[i].stream) == row.stream);
      CHECK(batch->framed[i].seq == row.row.seq);
      CHECK(batch->framed[i].begin == row.row.begin);
    }
  }
  CHECK(padding > 0);
  CHECK_FALSE(next_copy(loader).has_value());
}

TEST_CASE("the tensor has the dtype, aligned to 256 bytes") {
  Eight eight;
  auto loader = eight.loader({.dtype = Element::f32});
  const auto batch = take(loader);
  REQUIRE(batch.has_value());
  CHECK(batch->row_as<float>(1)[2] == 1002.0f / 32768);
  CHECK(reinterpret_cast<std::uintptr_t>(batch->data().data()) % 256 == 0);
}

TEST_CASE("an epoch ends with no batch, and the next one follows") {
  Eight eight;
  for (const std::uint32_t threads : {0, 1, 3}) {
    auto loader = eight.loader({.threads = threads, .dtype = Element::s16});
    auto first = read_epoch(loader);
    CHECK(loader.at_end());
    CHECK(loader.position() == PlanPosition{1, 0});
    auto second = read_epoch(loader);
    CHECK(first.size() == loader.steps());
    for (auto& batch : first) batch.epoch = 1;
    CHECK(first == second);
  }
}

TEST_CASE("any number of threads gives the same batches") {
  Eight eight;
  auto alone = eight.loader({.threads = 0, .dtype = Element::s16});
  const auto expected = read_epoch(alone);
  for (const std::uint32_t threads : {1, 2, 3, 7})
    for (const std::uint32_t prefetch : {1, 2, 5}) {
      auto loader = eight.loader({.threads = threads, .prefetch = prefetch, .dtype = Element::s16});
      CHECK(read_epoch(loader) == expected);
    }
}

TEST_CASE("threads can be added within an epoch") {
  Eight eight;
  auto alone = eight.loader({.threads = 0, .dtype = Element::s16});
  const auto expected = read_epoch(alone);
  auto loader = eight.loader({.threads = 1, .dtype = Element::s16});
  std::vector<LoadedBatch> batches;
  auto kept = take(loader);
  REQUIRE(kept.has_value());
  batches.push_back(copy_of(*kept));
  for (const std::uint32_t threads : {2, 3, 1}) {
    loader.set_threads(threads);
    CHECK(loader.threads() == threads);
    batches.push_back(*next_copy(loader));
  }
  for (LoadedBatch& batch : read_epoch(loader)) batches.push_back(std::move(batch));
  CHECK(batches == expected);
  CHECK(copy_of(*kept) == expected.front());
  loader.give_back(*kept);
}

TEST_CASE("a stream is read by one thread, and closed after its last row") {
  Eight eight;
  std::array<std::atomic<std::thread::id>, 8> readers{};
  std::atomic<bool> mixed{false};
  eight.catalog->on_read = [&](std::uint64_t stream, std::uint64_t) {
    const auto before = readers[stream].exchange(std::this_thread::get_id());
    if (before != std::thread::id() && before != std::this_thread::get_id()) mixed = true;
    return Result<void, training::ReadError>();
  };
  auto loader = eight.loader({.threads = 3, .prefetch = 5});
  // A stream for each slot, and those of later batches that are opened ahead: 16 for each thread.
  while (next_copy(loader)) CHECK(eight.catalog->open_readers() <= 3 + 3 * 16);
  CHECK_FALSE(mixed);
  CHECK(eight.catalog->opened_readers() >= 8);
  loader.stop();
  CHECK(eight.catalog->open_readers() == 0);
}

TEST_CASE("a loader continues at the position that it was set to") {
  Eight eight;
  for (const std::uint32_t threads : {0, 2}) {
    auto loader = eight.loader({.threads = threads, .dtype = Element::s16});
    const auto all = read_epoch(loader);
    for (std::uint64_t step = 0; step <= all.size(); ++step) {
      loader.seek({0, step});
      CHECK(loader.position() == PlanPosition{0, step});
      if (step < all.size()) {
        const auto batch = next_copy(loader);
        CHECK((batch == all[step]));
        CHECK(loader.position() == PlanPosition{0, step + 1});
      } else {
        CHECK_FALSE(next_copy(loader).has_value());
      }
    }
  }
}

TEST_CASE("nothing is opened before the first batch") {
  Eight eight;
  auto loader = eight.loader({.threads = 2});
  CHECK(loader.steps() > 0);
  CHECK(loader.position() == PlanPosition{});
  CHECK(eight.catalog->opened_readers() == 0);
}

TEST_CASE("after stop() a loader continues with the next batch") {
  Eight eight;
  auto alone = eight.loader({.threads = 0, .dtype = Element::s16});
  const auto expected = read_epoch(alone);
  auto loader = eight.loader({.threads = 3, .prefetch = 4, .dtype = Element::s16});
  for (const auto& batch : expected) {
    CHECK((next_copy(loader) == batch));
    loader.stop();
  }
}

TEST_CASE("threads are added while the caller waits for slow reads") {
  Eight eight;
  std::counting_semaphore<> reads(0);
  std::atomic<bool> ends = false;
  eight.catalog->on_read = [&](std::uint64_t, std::uint64_t) -> Read {
    while (!ends && !reads.try_acquire_for(std::chrono::milliseconds(1))) {
    }
    return {};
  };
  auto loader = eight.loader({.threads = 1, .most_threads = 2, .prefetch = 1});
  const Time limit = soon();
  while (loader.threads() == 1 && Clock::now() < limit) {
    reads.release();
    auto batch = loader.next_until(Clock::now() + std::chrono::milliseconds(20));
    REQUIRE(batch.has_value());
    if (*batch) loader.give_back(**batch);
  }
  CHECK(loader.threads() == 2);
  ends = true;
  CHECK(next_copy(loader).has_value());
}

// A buffer is given back while stop() is called: the thread receives both at once.
TEST_CASE("stop() ends a thread that is about to wait") {
  Eight eight;
  auto loader = eight.loader({.prefetch = 1, .dtype = Element::s16});
  for (int i = 0; i < sampled(20'000); ++i) {
    auto batch = take(loader);
    if (batch) loader.give_back(*batch);
    loader.stop();
  }
}

TEST_CASE("statistics count rows, padding, kept batches and the time of the fillers") {
  Eight eight;
  auto loader = eight.loader({.threads = 1, .dtype = Element::s16});
  CHECK_FALSE(loader.stats().first);
  auto kept = take(loader);
  REQUIRE(kept.has_value());
  CHECK(loader.stats().kept == 1);
  CHECK(loader.stats().first);
  loader.give_back(*kept);
  std::uint64_t batches = 1;
  while (next_copy(loader)) ++batches;
  const auto stats = loader.stats();
  CHECK(stats.batches == batches);
  CHECK(stats.frames == batches * 3 * 4);
  CHECK(stats.bodies == 7 + 10 + 13 + 16 + 19 + 22 + 25 + 28);
  CHECK(stats.padding == stats.frames - stats.bodies);
  CHECK(stats.filling > Duration::zero());
  CHECK(stats.kept == 0);
}

TEST_CASE("a batch lists the streams that it opens") {
  Eight eight;
  auto loader = eight.loader({.threads = 1});
  std::vector<std::pair<std::uint64_t, std::uint32_t>> opened;
  for (;;) {
    auto batch = take(loader);
    if (!batch) break;
    for (const auto& stream : batch->opened())
      opened.emplace_back(number(stream.stream), stream.slot);
    loader.give_back(*batch);
  }
  std::ranges::sort(opened);
  CHECK(opened == decltype(opened){{0, 0}, {1, 1}, {2, 2}, {3, 0}, {4, 1}, {5, 2}, {6, 0}, {7, 1}});
}
