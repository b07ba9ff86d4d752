// SPDX-License-Identifier: Apache-2.0
// Batches that an epoch leaves out: of which buckets and places they are.
#include <catch2/catch.hpp>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "tests/training/plans/listed_catalog.h"
#include "tests/training/plans/read_plan.h"
#include "training/contract/plan_options.h"

namespace millrace::training {
namespace {

// The rows of all ranks, by stream and number.
std::set<std::pair<std::uint64_t, std::uint64_t>> given_rows(const EpochPlan& epoch,
                                                             std::uint32_t world) {
  std::set<std::pair<std::uint64_t, std::uint64_t>> given;
  for (std::uint32_t rank = 0; rank < world; ++rank)
    for (const PlannedBatch& batch : batches_of(epoch, {.rank = {rank, world}}))
      for (const PlannedRow& row : batch.framed) given.emplace(row.stream, row.row.seq);
  return given;
}

TEST_CASE("no bucket is left out in all epochs, however few rows it has") {
  for (const bool shuffle : {true, false})
    for (const std::uint64_t scarce : {10u, 50u, 90u}) {  // of which there are six
      std::vector<std::uint64_t> lengths(192, 30);
      lengths.insert(lengths.end(), 192, 70);
      for (int i = 0; i < 6; ++i) lengths.push_back(scarce);
      const ListedCatalog catalog(lengths);
      PlanOptions options{.mode = PlanMode::stateless, .chunk = {}, .shuffle = shuffle, .rows = 4};
      options.buckets = {20, 40, 60, 80};
      const auto plan = plan_of(catalog, options, {0, 4});
      std::set<std::pair<std::uint64_t, std::uint64_t>> given;
      for (std::uint64_t epoch = 0; epoch < 40; ++epoch) {
        const auto rows = given_rows(*plan->epoch(epoch), 4);
        CHECK(rows.size() > 390 - 4 * 4);
        given.insert(rows.begin(), rows.end());
      }
      INFO(scarce << (shuffle ? " shuffled" : ""));
      CHECK(given.size() == 390);
    }
}

TEST_CASE("other batches are left out in each epoch, also without shuffling") {
  for (const bool shuffle : {true, false}) {
    const ListedCatalog catalog(std::vector<std::uint64_t>(27, 10));
    const PlanOptions options{
        .mode = PlanMode::stateless, .chunk = {}, .shuffle = shuffle, .rows = 2};
    const auto plan = plan_of(catalog, options, {0, 4});
    std::set<std::pair<std::uint64_t, std::uint64_t>> given;
    for (std::uint64_t epoch = 0; epoch < 30; ++epoch)
      given.merge(given_rows(*plan->epoch(epoch), 4));
    CHECK(given.size() == 27);
  }
}

TEST_CASE("other batches of a single stream are left out in each epoch, in RETURNN's modes too") {
  const ListedCatalog catalog({51});
  for (const auto mode : {PlanMode::returnn_classic, PlanMode::returnn_torch}) {
    PlanOptions options{.mode = mode, .chunk = {}, .rows = 2};
    options.chunk.emplace().spec = {.size = 4, .step = 4};
    const auto plan = plan_of(catalog, options, {0, 4});
    std::set<std::pair<std::uint64_t, std::uint64_t>> given;
    for (std::uint64_t epoch = 0; epoch < 40; ++epoch)
      given.merge(given_rows(*plan->epoch(epoch), 4));
    CHECK(given.size() == 13);
  }
}

TEST_CASE("no row is left out in all epochs, also in small buckets that wide ones need") {
  struct Case {
    std::vector<std::uint64_t> lengths;
    PlanOptions options;
    std::uint32_t world;
  };
  PlanOptions options{.mode = PlanMode::stateless, .chunk = {}, .seed = 94, .rows = 5};
  options.buckets = {11, 37, 50, 53};
  options.max_padded_frames = 148;
  std::vector<Case> cases{{{4, 7, 8, 8, 14, 15, 28, 32, 32, 32, 36, 51, 55, 56}, options, 4}};
  std::vector<std::uint64_t> lengths(36, 20);
  for (const std::uint64_t more : {45u, 60u}) lengths.insert(lengths.end(), 8, more);
  options = {.mode = PlanMode::stateless, .chunk = {}, .seed = 1, .rows = 4, .buckets = {28, 50}};
  for (const bool shuffle : {true, false}) {
    options.shuffle = shuffle;
    cases.push_back({lengths, options, 8});
  }
  options = {.mode = PlanMode::stateless, .chunk = {}, .seed = 97, .rows = 5, .max_waste = 0.6};
  options.buckets = {35, 50, 52, 53};
  options.width_buckets = {35, 50, 52, 53, 60};
  cases.push_back({{60, 56, 17, 2}, options, 2});
  options.seed = 50;
  options.shuffle = false;
  options.width_buckets.clear();
  options.buckets = {16, 54};
  lengths = {12, 11, 22, 40, 11, 57, 35, 58, 60, 9, 41, 37, 53, 23, 13, 50, 50, 51, 10};
  cases.push_back({lengths, options, 8});
  for (const Case& one : cases) {
    const ListedCatalog catalog(one.lengths);
    const auto plan = plan_of(catalog, one.options, {0, one.world});
    std::set<std::pair<std::uint64_t, std::uint64_t>> given;
    for (std::uint64_t epoch = 0; epoch < 200; ++epoch)
      given.merge(given_rows(*plan->epoch(epoch), one.world));
    CHECK(given.size() == one.lengths.size());
  }
}

TEST_CASE("an epoch has a step if another way to divide its batches gives one") {
  const ListedCatalog catalog({51, 3, 51, 28});
  PlanOptions options{.mode = PlanMode::stateless, .chunk = {}, .seed = 1, .shuffle = false};
  options.rows = 4;
  options.max_waste = 0.3;
  options.buckets = {32, 33, 37};
  const auto plan = plan_of(catalog, options, {0, 3});
  for (std::uint64_t number = 0; number < 25; ++number) CHECK(plan->epoch(number)->steps() == 1);
}

TEST_CASE("if the limits decide which rows fit, each epoch with a row for each rank has a step") {
  std::mt19937_64 random(8);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::uint64_t> lengths(2 + random() % 20);
    for (std::uint64_t& length : lengths) length = 1 + random() % 60;
    const ListedCatalog catalog(lengths);
    PlanOptions options{.mode = PlanMode::stateless, .chunk = {}, .seed = random() % 99};
    options.rows = static_cast<std::uint32_t>(2 + random() % 5);
    options.shuffle = random() % 2 > 0;
    options.max_waste = 0.3 * static_cast<double>(1 + random() % 3);
    if (random() % 2 > 0) options.buckets = options.width_buckets = {20, 60};
    const auto world = static_cast<std::uint32_t>(2 + random() % (lengths.size() - 1));
    const auto plan = plan_of(catalog, options, {0, world});
    std::set<std::pair<std::uint64_t, std::uint64_t>> given;
    for (std::uint64_t number = 0; number < 10; ++number) {
      const auto epoch = plan->epoch(number);
      const auto rows = given_rows(*epoch, world);
      CHECK(rows.size() >= world);
      std::size_t all = 0;
      std::set<std::pair<std::uint64_t, std::uint32_t>> widths;
      for (std::uint32_t rank = 0; rank < world; ++rank)
        for (const PlannedBatch& batch : batches_of(*epoch, {.rank = {rank, world}})) {
          all += batch.framed.size();
          widths.emplace(batch.step, batch.width);
        }
      CHECK(all == rows.size());  // none is doubled
      if (!options.buckets.empty()) CHECK(widths.size() == epoch->steps());
    }
  }
}

TEST_CASE("an epoch without a step is an error that names batches and ranks") {
  const ListedCatalog catalog(std::vector<std::uint64_t>(11, 10));
  PlanOptions options{.mode = PlanMode::stateless, .chunk = {}, .rows = 4};
  CHECK_THROWS_WITH(plan_of(catalog, options, {0, 8})->epoch(2),
                    "epoch 2 has no step: it has 3 batches for world = 8; use smaller batches, "
                    "fewer ranks, or drop_last = false, which completes a step with batches of "
                    "padding");
  options.drop_last = false;
  CHECK(plan_of(catalog, options, {0, 8})->epoch(2)->steps() == 1);
}

TEST_CASE("windows come in another order in each epoch") {
  const ListedCatalog catalog(std::vector<std::uint64_t>(100, 8));
  for (const bool whole : {true, false}) {
    PlanOptions options{.mode = PlanMode::stateless, .chunk = {}, .rows = 5};
    if (!whole) options.chunk.emplace().spec.size = 4;
    options.shuffle_window = 20;
    const auto plan = plan_of(catalog, options);
    std::set<std::uint64_t> first;
    for (std::uint64_t epoch = 0; epoch < 20; ++epoch)
      first.insert(batches_of(*plan->epoch(epoch)).front().framed.front().stream / 20);
    CHECK(first.size() > 2);
  }
}

}  // namespace
}  // namespace millrace::training
