// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "tests/training/plans/planned_rows.h"
#include "tests/training/plans/random_plans.h"
#include "tests/training/plans/read_plan.h"
#include "training/contract/plan_options.h"

namespace millrace::training {
namespace {

bool has_buckets(const PlanOptions& options) {
  return !options.buckets.empty() || options.bucket_count > 0;
}

bool has_chunks(const PlanCase& one) { return one.options.chunk.has_value(); }

PlanCase random_stateless(std::mt19937_64& random) {
  PlanCase one;
  one.catalog = random_catalog(random, 40, random() % 3 == 0);
  one.options.mode = PlanMode::stateless;
  one.options.shuffle = random() % 4 > 0;
  one.options.seed = random() % 4;
  one.options.drop_last = random() % 2 == 0;
  if (random() % 3 > 0) one.options.chunk = random_rule(random, random() % 3 == 0);
  if (random() % 3 == 0) one.options.shuffle_window = 1 + random() % 12;
  if (random() % 3 == 0) one.options.buckets = {has_chunks(one) ? 5u : 10u, 25};
  one.options.rows = static_cast<std::uint32_t>(random() % 6);
  if (one.options.rows == 0 || random() % 3 == 0) one.options.max_padded_frames = 1 + random() % 99;
  if (random() % 4 == 0) one.options.max_waste = 0.25;
  if (!has_chunks(one) && one.options.buckets.empty()) {
    if (random() % 3 == 0)
      one.options.order = std::array{"sorted", "laplace", "laplace:.4"}[random() % 3];
    else if (random() % 3 == 0)
      one.options.bucket_count = static_cast<std::uint32_t>(2 + random() % 4);
  }
  one.world = static_cast<std::uint32_t>(1 + random() % 4);
  one.epoch = random() % 3;
  return one;
}

template <class Test>
void with_stateless_plans(int rounds, std::uint64_t seed, Test test) {
  with_plans(rounds, seed, random_stateless, test);
}

// The rows with frames of the epoch, by stream and number.
std::map<std::pair<std::uint64_t, std::uint64_t>, CutRow> all_rows(const PlanCase& one) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, CutRow> rows;
  for (std::uint64_t i = 0; i < one.catalog.size(); ++i) {
    if (!has_chunks(one)) {
      Row row;
      row.size = static_cast<std::uint32_t>(one.catalog.frames(i));
      row.flags = flag::start | flag::reset | flag::segment | flag::last | flag::end;
      row.reason = ResetReason::start;
      if (row.size > 0) rows[{i, 0}] = {row, 0};
      continue;
    }
    for (CutRow cut : live_rows(one, i)) {
      if (!cut.row.has_frames()) continue;
      cut.row.flags |= flag::reset;
      if (cut.row.reason == ResetReason::none) cut.row.reason = ResetReason::start;
      rows[{i, cut.row.seq}] = cut;
    }
  }
  return rows;
}

TEST_CASE("each row of an epoch is in one batch, as a run of its own", "[property]") {
  with_stateless_plans(400, 1, [](const PlanCase& one, const Plan& plan, std::mt19937_64&) {
    auto rows = all_rows(one);
    for (const PlannedBatch& batch : batches_of(*plan.epoch(one.epoch))) {
      CHECK(batch.marks.empty());
      for (const PlannedRow& row : batch.framed) {
        const auto found = rows.find({row.stream, row.row.seq});
        REQUIRE(found != rows.end());
        CHECK(row.row == found->second.row);
        CHECK(row.frame == found->second.frame);
        CHECK(row.opens);
        rows.erase(found);
      }
    }
    CHECK(rows.empty());
  });
}

TEST_CASE("ranks have equal steps, and leave out fewer batches than ranks", "[property]") {
  with_stateless_plans(600, 10, [](const PlanCase& one, const Plan& plan, std::mt19937_64&) {
    const auto epoch = plan.epoch(one.epoch);
    std::set<std::pair<std::uint64_t, std::uint64_t>> given;
    std::uint64_t padding = 0;
    for (std::uint32_t rank = 0; rank < one.world; ++rank) {
      const auto batches = batches_of(*epoch, {.rank = {rank, one.world}});
      REQUIRE(batches.size() == epoch->steps());
      for (const PlannedBatch& batch : batches) {
        if (batch.framed.empty()) ++padding;
        for (const PlannedRow& row : batch.framed)
          REQUIRE(given.emplace(row.stream, row.row.seq).second);
      }
    }
    const std::size_t left_out = all_rows(one).size() - given.size();
    if (one.options.drop_last) {
      CHECK(padding == 0);
      CHECK(left_out <= (one.world - 1) * std::uint64_t{plan.most_rows({0, one.world})});
    } else {
      CHECK(left_out == 0);
      CHECK(padding < one.world);
    }
  });
}

TEST_CASE("a batch of one group is that of a step and a rank of all batches", "[property]") {
  with_stateless_plans(200, 3, [](const PlanCase& one, const Plan& plan, std::mt19937_64&) {
    const bool ordered = !one.options.shuffle || !one.options.order.empty();
    const bool tail = !ordered || !one.options.drop_last;  // is left out
    if (has_buckets(one.options) || !tail) return;
    const auto epoch = plan.epoch(one.epoch);
    const auto whole = batches_of(*epoch);
    for (std::uint32_t rank = 0; rank < one.world; ++rank)
      for (const PlannedBatch& batch : batches_of(*epoch, {.rank = {rank, one.world}})) {
        const std::uint64_t number = batch.step * one.world + rank;
        if (number < whole.size())
          REQUIRE(same_rows(batch.framed, whole[number].framed));
        else
          CHECK(batch.framed.empty());
      }
  });
}

TEST_CASE("a stateless cursor from any step with any stride gives these steps", "[property]") {
  with_stateless_plans(300, 4, [](const PlanCase& one, const Plan& plan, std::mt19937_64& random) {
    const auto epoch = plan.epoch(one.epoch);
    const Rank rank{static_cast<std::uint32_t>(random() % one.world), one.world};
    const auto whole = batches_of(*epoch, {.rank = rank});
    const std::uint64_t step = random() % (whole.size() + 2), stride = 1 + random() % 9;
    REQUIRE(same(batches_of(*epoch, {rank, step, stride}), every(whole, step, stride)));
  });
}

TEST_CASE("batches keep the limits, and no batch could take the next row", "[property]") {
  with_stateless_plans(300, 5, [](const PlanCase& one, const Plan& plan, std::mt19937_64&) {
    const PlanOptions& options = one.options;
    for (const PlannedBatch& batch : batches_of(*plan.epoch(one.epoch))) {
      CHECK(batch.rows == batch.framed.size());
      CHECK(batch.rows <= plan.most_rows({0, one.world}));
      CHECK(batch.width <= plan.most_columns());
      CHECK(std::uint64_t{batch.rows} * batch.width <= plan.most_padded_frames({0, one.world}));
      if (options.rows > 0) CHECK(batch.rows <= options.rows);
      if (options.max_padded_frames > 0 && batch.rows > 1)
        CHECK(std::uint64_t{batch.rows} * batch.width <= options.max_padded_frames);
      double columns = 0;
      for (const PlannedRow& row : batch.framed) {
        const RowColumns layout = has_chunks(one) ? options.chunk->columns() : RowColumns{};
        const std::uint32_t needed = layout.needed(row.row.left, row.row.size, row.row.right);
        CHECK(needed <= batch.width);
        CHECK(row.row.size <= batch.body);
        columns += needed;
      }
      const double padded = static_cast<double>(batch.rows) * batch.width;
      if (options.max_waste > 0 && batch.rows > 1)
        CHECK(padded - columns <= options.max_waste * padded);
    }
  });
}

TEST_CASE("the totals of a stateless epoch are those of its batches", "[property]") {
  with_stateless_plans(300, 6, [](const PlanCase& one, const Plan& plan, std::mt19937_64&) {
    const auto epoch = plan.epoch(one.epoch);
    std::vector<PlannedBatch> batches;
    for (std::uint32_t rank = 0; rank < one.world; ++rank)
      for (const PlannedBatch& batch : batches_of(*epoch, {.rank = {rank, one.world}}))
        batches.push_back(batch);
    const PlanTotals totals = epoch->totals(), counted = counted_totals(batches);
    CHECK(totals.rows == counted.rows);
    CHECK(totals.padding_rows == counted.padding_rows);
    CHECK(totals.frames == counted.frames);
  });
}

TEST_CASE("all ranks use the same bucket at a step", "[property]") {
  with_stateless_plans(400, 7, [](const PlanCase& one, const Plan& plan, std::mt19937_64&) {
    if (one.options.buckets.empty()) return;
    const auto bucket = [&](const PlannedBatch& batch) {
      return std::ranges::lower_bound(one.options.buckets, batch.width) -
             one.options.buckets.begin();
    };
    std::map<std::uint64_t, std::set<std::ptrdiff_t>> buckets;
    const auto epoch = plan.epoch(one.epoch);
    for (std::uint32_t rank = 0; rank < one.world; ++rank)
      for (const PlannedBatch& batch : batches_of(*epoch, {.rank = {rank, one.world}}))
        buckets[batch.step].insert(bucket(batch));
    for (const auto& [step, used] : buckets) CHECK(used.size() == 1);
  });
}

TEST_CASE("shuffling in windows leaves rows in the window of their stream", "[property]") {
  with_stateless_plans(400, 8, [](const PlanCase& one, const Plan& plan, std::mt19937_64&) {
    const std::uint64_t window = one.options.shuffle_window;
    if (window == 0 || !one.options.buckets.empty()) return;
    if (!has_chunks(one)) return;  // windows count the streams with frames
    std::vector<std::uint64_t> windows;
    for (const PlannedBatch& batch : batches_of(*plan.epoch(one.epoch)))
      for (const PlannedRow& row : batch.framed)
        if (windows.empty() || windows.back() != row.stream / window)
          windows.push_back(row.stream / window);
    if (!one.options.shuffle) CHECK(std::ranges::is_sorted(windows));
    std::ranges::sort(windows);
    CHECK(std::ranges::adjacent_find(windows) == windows.end());
  });
}

TEST_CASE("without shuffling rows are in the order of the catalog", "[property]") {
  with_stateless_plans(400, 9, [](const PlanCase& one, const Plan& plan, std::mt19937_64&) {
    if (one.options.shuffle || !one.options.order.empty() || has_buckets(one.options)) return;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> planned_order, order;
    for (const PlannedBatch& batch : batches_of(*plan.epoch(one.epoch)))
      for (const PlannedRow& row : batch.framed)
        planned_order.emplace_back(row.stream, row.row.seq);
    for (const auto& [name, cut] : all_rows(one)) order.push_back(name);
    CHECK(planned_order == order);
  });
}

}  // namespace
}  // namespace millrace::training
