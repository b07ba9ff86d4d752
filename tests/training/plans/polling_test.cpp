// SPDX-License-Identifier: Apache-2.0
// The distribution of an epoch can be ended, in each mode.
#include <catch2/catch.hpp>
#include <cstdint>
#include <random>
#include <vector>

#include "tests/training/plans/listed_catalog.h"
#include "tests/training/plans/planned_rows.h"
#include "tests/training/plans/read_plan.h"
#include "training/contract/plan_options.h"
#include "training/contract/poll.h"
#include "training/plans/padding.h"

namespace millrace::training {
namespace {

PlanOptions options_of_mode(PlanMode mode) {
  PlanOptions options{.mode = mode, .chunk = ChunkRule{}};
  options.chunk->spec = {.size = 4, .step = 4};
  if (mode == PlanMode::stateful)
    options.slots = 8;
  else
    options.rows = 16;
  return options;
}

// Options for each way to distribute streams.
std::vector<PlanOptions> all_ways() {
  std::vector<PlanOptions> ways;
  for (const auto mode : values_of<PlanMode>()) ways.push_back(options_of_mode(mode));
  const auto add = [&](auto change) {
    PlanOptions options = options_of_mode(PlanMode::stateless);
    change(options);
    ways.push_back(options);
  };
  add([](PlanOptions& o) { o.max_waste = 0.1; });
  add([](PlanOptions& o) { o.buckets = {2}; });
  add([](PlanOptions& o) { o.frequencies = {0.9}; });
  add([](PlanOptions& o) { o.chunk.reset(); });
  add([](PlanOptions& o) { o.chunk.reset(), o.order = "laplace:.1000"; });
  add([](PlanOptions& o) { o.chunk.reset(), o.bucket_count = 4; });
  ways.back().max_padded_frames = 300;
  return ways;
}

ListedCatalog many_streams() {
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> lengths(30'000);
  for (std::uint64_t& one : lengths) one = 1 + random() % 20;
  return ListedCatalog(lengths);
}

TEST_CASE("a poll can end the distribution of an epoch, and the next one is as ever") {
  struct Ended {};
  const ListedCatalog catalog = many_streams();
  for (const PlanOptions& options : all_ways()) {
    INFO("mode " << static_cast<int>(options.mode) << " order " << options.order);
    const auto plan = plan_of(catalog, options);
    const auto whole = plan->epoch(1);
    int polls = 0;
    const auto counted = plan->epoch(1, [&] { ++polls; });
    const bool divides_nothing = options.mode == PlanMode::stateless && options.chunk &&
                                 options.max_waste == 0 && options.buckets.empty() &&
                                 options.frequencies.empty();  // it takes no time
    if (divides_nothing)
      CHECK(polls == 0);
    else
      CHECK(polls >= 5);
    for (int last = 0; last < polls; ++last) {
      int left = last;
      const auto poll = [&] {
        if (left-- == 0) throw Ended();
      };
      CHECK_THROWS_AS(plan->epoch(1, poll), Ended);
    }
    CHECK(same(batches_of(*counted), batches_of(*whole)));
  }
}

TEST_CASE("a poll can end the search for a number of slots while a function gives lengths") {
  struct Ended {};
  const ListedCatalog catalog({400, 4, 4, 4});
  PlanOptions options = options_of_mode(PlanMode::stateful);
  options.slots = 4;
  const auto totals = plan_of(catalog, options)->epoch(0)->totals();
  int asked = 0;
  options.frames = [&](std::uint64_t, std::uint64_t stream, std::uint32_t) {
    ++asked;
    return catalog.frames(stream);
  };
  CHECK_THROWS_AS(padding_warning(catalog, options, {}, totals, [] { throw Ended(); }), Ended);
  CHECK(asked == 1);
}

}  // namespace
}  // namespace millrace::training
