// SPDX-License-Identifier: Apache-2.0
// Streams that cannot be delivered and are skipped, and states that are lost.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>

#include "tests/training/filling/loading.h"
#include "training/contract/plan_options.h"
#include "training/plans/make_plan.h"

using namespace millrace;
using namespace millrace::test;
using training::DataFault;
using training::Loader;
using training::LoaderSettings;
using training::ReadError;
using training::StreamCopy;
using training::StreamFunction;

namespace {

using Entry = worker_protocol::RowEntry;

// The rows of a batch without those of stream 4 from this frame on.
std::vector<Entry> without(std::vector<Entry> rows, std::uint64_t frame) {
  std::erase_if(rows, [&](const Entry& row) {
    return row.stream == StreamId(4) && row.begin + row.size > frame;
  });
  return rows;
}

// Checks that `batch` has these rows of `clean`, and padding rows.
void check_rows(const LoadedBatch& batch, const LoadedBatch& clean,
                const std::vector<Entry>& rows) {
  REQUIRE((batch.framed == rows));
  CHECK(batch.rows == clean.rows);
  CHECK(batch.width == clean.width);
  for (std::size_t at = 0, from = 0; at < rows.size(); ++at, ++from) {
    while (!(clean.framed[from] == rows[at])) ++from;
    CHECK((row_of(batch, at) == row_of(clean, from)));
    CHECK(batch.flags[at] == rows[at].flags);
    CHECK(batch.slot[at] == static_cast<std::int32_t>(rows[at].slot));
  }
  for (std::size_t at = rows.size(); at < batch.rows; ++at) {
    CHECK((batch.size[at] == 0 && batch.slot[at] == 3));
    CHECK(std::ranges::all_of(row_of(batch, at), [](std::byte b) { return b == std::byte{}; }));
  }
}

}  // namespace

TEST_CASE("rows of a failed stream are padding rows until its end, in batches of the same shape") {
  Eight eight;
  auto clean = eight.loader();
  const auto all = read_epoch(clean);
  clean.stop();
  eight.catalog->on_read = [](std::uint64_t stream, std::uint64_t begin) -> Read {
    if (stream == 4 && begin == 8) return ReadError{DataFault::read, "four.wav: damaged"};
    return {};  // it could be read from there on
  };
  for (const std::uint32_t threads : {0, 1, 3}) {
    auto loader = eight.loader({.threads = threads, .prefetch = 4, .skip_failed = true});
    int failures = 0;
    for (const LoadedBatch& expected : all) {
      auto batch = take(loader);
      REQUIRE(batch);
      const LoadedBatch copy = copy_of(*batch);
      check_rows(copy, expected, without(expected.framed, 8));
      CHECK((copy.marks == without(expected.marks, 8)));
      if (!batch->failed().empty()) {
        ++failures;
        CHECK(batch->failed() ==
              R"([{"stream":4,"name":"stream 4","message":"four.wav: damaged","fault":"read",)"
              R"("epoch":0,"step":)" +
                  std::to_string(expected.step) + "}]");
      }
      loader.give_back(*batch);
    }
    CHECK(failures == 1);
    CHECK_FALSE(take(loader));
    const auto next = take(loader);  // fails again in the next epoch
    REQUIRE(next);
  }
}

TEST_CASE(
    "a stream that cannot be opened, or whose function fails, has no rows and is not opened") {
  Eight eight;
  class Failing final : public StreamFunction {
    Read change(const StreamCopy& of, Content&) override {
      if (of.stream == 4) return ReadError{DataFault::function, "division by zero"};
      return {};
    }
  };
  for (const bool function : {false, true}) {
    if (!function) eight.catalog->on_open = cannot_open(4, "no such file");
    auto loader = eight.loader({.threads = 2, .skip_failed = true},
                               function ? std::make_shared<Failing>() : nullptr);
    int failures = 0;
    while (auto batch = take(loader)) {
      failures += batch->failed().empty() ? 0 : 1;
      for (const Entry& row : batch->framed()) CHECK(row.stream != StreamId(4));
      for (const Entry& row : batch->marks()) CHECK(row.stream != StreamId(4));
      for (const auto& stream : batch->opened()) CHECK(stream.stream != StreamId(4));
      loader.give_back(*batch);
    }
    CHECK(failures == 1);
    loader.stop();
    eight.catalog->on_open = nullptr;
  }
}

TEST_CASE("companions move with the rows that are kept") {
  const auto catalog = std::make_shared<MemoryCatalog>(FrameType{});
  catalog->set_companions({{.name = "label", .element = CompanionElement::s16}});
  for (std::int16_t stream = 0; stream < 3; ++stream) {
    const std::vector<std::int16_t> values(4, static_cast<std::int16_t>(stream + 1));
    catalog->add({.frames = bytes_of(values), .companions = {bytes_of(values)}});
  }
  catalog->on_open = cannot_open(1, "gone");
  Loader loader(catalog, std::make_shared<ListedPlan>(*catalog, 3, Spec{.size = 4}),
                {.dtype = Element::s16, .skip_failed = true});
  const auto batch = next_copy(loader);
  REQUIRE(batch);
  CHECK(
      (batch->companions.front() == bytes_of<std::int16_t>({1, 1, 1, 1, 3, 3, 3, 3, 0, 0, 0, 0})));
  CHECK((batch->tensor == bytes_of<std::int16_t>({1, 1, 1, 1, 3, 3, 3, 3, 0, 0, 0, 0})));
}

TEST_CASE("without slots, the rows of a failed stream are padding rows too") {
  Eight eight;
  eight.catalog->on_open = cannot_open(4, "gone");
  for (const auto mode : {training::PlanMode::stateless, training::PlanMode::returnn_classic})
    for (const bool whole : {false, true}) {
      if (whole && mode != training::PlanMode::stateless) continue;
      training::PlanOptions options{.mode = mode, .chunk = {}, .rows = 3};
      if (!whole) options.chunk.emplace().spec.size = 4;
      auto plan = training::make_plan(*eight.catalog, options, {});
      REQUIRE(plan.has_value());
      const std::shared_ptr<const training::Plan> shared(std::move(*plan));
      std::uint64_t rows = 0, padding = 0, failures = 0;
      Loader loader(eight.catalog, shared, {.threads = 2, .skip_failed = true});
      const auto totals = loader.epoch_plan()->totals();
      while (auto batch = take(loader)) {
        rows += batch->framed().size();
        padding += batch->rows() - batch->framed().size();
        failures += batch->failed().empty() ? 0 : 1;
        for (std::size_t at = 0; at < batch->framed().size(); ++at) {
          CHECK(batch->framed()[at].stream != StreamId(4));
          CHECK(batch->framed()[at].slot == at);
          CHECK(batch->slot()[at] == static_cast<std::int32_t>(at));
        }
        loader.give_back(*batch);
      }
      CHECK(failures == 1);
      CHECK(padding > 0);
      CHECK(rows + padding == totals.rows);
    }
}

TEST_CASE("a stream fails at the same frame for every stride, and after a resume") {
  const auto catalog = std::make_shared<MemoryCatalog>(FrameType{.element = Element::f32});
  for (std::size_t stream = 0; stream < 6; ++stream) {
    std::vector<float> values(24, static_cast<float>(stream + 1));
    if (stream == 4) values[9] = std::numeric_limits<float>::quiet_NaN();
    catalog->add({.frames = bytes_of(values)});
  }
  for (const std::uint32_t slots : {0, 2}) {
    training::PlanOptions options{.mode = training::PlanMode::stateless, .chunk = {}};
    options.chunk.emplace().spec.size = 4;
    if (slots > 0) options.mode = training::PlanMode::stateful;
    (slots > 0 ? options.slots : options.rows) = 2;
    auto made = training::make_plan(*catalog, options, {});
    REQUIRE(made.has_value());
    const std::shared_ptr<const training::Plan> plan(std::move(*made));
    Loader whole(catalog, plan, {.skip_failed = true});
    const auto all = read_epoch(whole);
    std::vector<std::uint64_t> bad;
    for (const LoadedBatch& batch : all)
      for (const Entry& row : batch.framed)
        if (row.stream == StreamId(4)) bad.push_back(row.begin);
    std::ranges::sort(bad);
    CHECK(bad == std::vector<std::uint64_t>{0, 4});
    for (const std::uint64_t stride : {1, 2, 3}) {
      for (std::uint64_t step = 0; step < all.size(); ++step) {
        Loader part(catalog, plan, {.stride = stride, .threads = 0, .skip_failed = true});
        part.seek({0, step});
        for (std::uint64_t at = step; at < all.size(); at += stride) {
          const auto batch = next_copy(part);
          REQUIRE(batch);
          CHECK((*batch == all[at]));
        }
      }
    }
  }
}

TEST_CASE(
    "a stream that has failed stays so when the loader goes on, also if it could be read again") {
  for (const std::uint32_t slots : {3, 0})
    for (const std::uint32_t threads : {0, 1, 3})
      for (const bool taken : {true, false}) {
        Eight eight;
        training::PlanOptions options{.mode = training::PlanMode::stateless, .chunk = {}};
        options.chunk.emplace().spec.size = 4;
        options.rows = 3;
        const std::shared_ptr<const training::Plan> plan =
            slots > 0 ? eight.plan(slots)
                      : std::move(*training::make_plan(*eight.catalog, options, {}));
        std::atomic<bool> met{false};
        eight.catalog->on_read = [&](std::uint64_t stream, std::uint64_t begin) -> Read {
          if (stream != 4 || begin < 8) return {};
          met = true;
          met.notify_all();
          return ReadError{DataFault::read, "busy"};
        };
        const LoaderSettings settings{.threads = threads, .prefetch = 8, .skip_failed = true};
        Loader whole(eight.catalog, plan, settings);
        const auto all = read_epoch(whole);
        whole.stop();
        met = false;
        Loader loader(eight.catalog, plan, settings);
        std::size_t failures = 0;
        for (std::size_t step = 0; step < all.size(); ++step) {
          auto batch = take(loader);
          REQUIRE(batch);
          CHECK((copy_of(*batch) == all[step]));
          failures += batch->failed().empty() ? 0 : 1;
          loader.give_back(*batch);
          if (taken ? failures == 0 : step > 0) continue;
          if (threads > 0) met.wait(false);
          loader.stop();  // drops the batches that were filled ahead
          loader.seek(loader.position());
          if (met) eight.catalog->on_read = nullptr;
        }
        CHECK(failures == 1);
        CHECK_FALSE(take(loader));
        loader.stop();
        eight.catalog->on_read = nullptr;
        loader.seek({0, 0});  // at another position, the stream is read again
        CHECK_FALSE((read_epoch(loader) == all));
      }
}

TEST_CASE("a loader that follows another one goes on at its place, and failed streams stay so") {
  Eight eight;
  std::atomic<bool> busy{true};
  eight.catalog->on_read = [&](std::uint64_t stream, std::uint64_t begin) -> Read {
    if (stream == 4 && begin >= 8 && busy) return ReadError{DataFault::read, "busy"};
    return {};
  };
  for (const std::uint32_t threads : {0, 1, 3}) {
    busy = true;
    const LoaderSettings settings{.threads = threads, .skip_failed = true};
    auto whole = eight.loader(settings);
    const auto all = read_epoch(whole);
    auto former = eight.loader(settings);
    std::size_t step = 0;
    for (bool failed = false; !failed; ++step) {
      auto batch = take(former);
      REQUIRE(batch);
      failed = !batch->failed().empty();
      former.give_back(*batch);
    }
    busy = false;
    auto loader = eight.loader(settings);
    loader.follow(former);  // which still fills
    loader.seek(loader.position());
    CHECK((read_epoch(loader) == std::vector(all.begin() + static_cast<long>(step), all.end())));
  }
}

TEST_CASE("frames before the first row are checked in parts that fit into a cache") {
  const auto catalog = std::make_shared<MemoryCatalog>(FrameType{.element = Element::f32});
  constexpr std::uint64_t frames = 1 << 20, most = (256 << 10) / sizeof(float);
  catalog->add({.frames = bytes_of(std::vector<float>(frames, 1.0F))});
  std::uint64_t before = 0, longest = 0;
  catalog->on_read = [&](std::uint64_t, std::uint64_t begin) -> Read {
    longest = std::max(longest, begin - std::exchange(before, begin));
    return {};
  };
  Loader loader(catalog, std::make_shared<ListedPlan>(*catalog, 1, Spec{.size = 1 << 16}),
                {.threads = 0, .skip_failed = true});
  loader.seek({0, 15});
  REQUIRE(next_copy(loader));
  CHECK(longest == most);
}

TEST_CASE("an exception of a reader is no failed stream") {
  Eight eight;
  eight.catalog->on_open = [](std::uint64_t) -> Read { throw std::runtime_error("no memory"); };
  auto loader = eight.loader({.skip_failed = true});
  CHECK_THROWS_WITH(loader.next_until(soon()), "no memory");
}

TEST_CASE("if the states are lost, the first row of each slot has RESET") {
  Eight eight;
  auto clean = eight.loader();
  const auto all = read_epoch(clean);
  for (const std::uint32_t threads : {0, 2}) {
    auto loader = eight.loader({.threads = threads});
    loader.seek({0, 1}, true);
    // Starts the threads. If the batch is ready at once, it is taken, and asked for again.
    if (*loader.next_until(Clock::now())) loader.seek({0, 1}, true);
    loader.stop();  // the batches that were not taken begin again with RESET
    const auto first = next_copy(loader);
    REQUIRE(first);
    for (std::size_t at = 0; at < first->framed.size(); ++at) {
      CHECK((first->flags[at] & flag::reset) != 0);
      CHECK(first->reset[at] == 1);
      const bool starts = (all[1].framed[at].flags & flag::reset) != 0;
      const auto reason = static_cast<ResetReason>(first->framed[at].reason);
      CHECK((starts || reason == ResetReason::worker_lost));
    }
    CHECK((first->tensor == all[1].tensor));
    CHECK((next_copy(loader) == all[2]));
    loader.seek({0, 1});
    CHECK((next_copy(loader) == all[1]));
  }
}
