// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "tests/training/plans/planned_rows.h"
#include "tests/training/plans/random_plans.h"
#include "tests/training/plans/read_plan.h"
#include "training/contract/plan_options.h"

namespace millrace::training {
namespace {

PlanCase random_stateful(std::mt19937_64& random) {
  PlanCase one;
  one.catalog = random_catalog(random, 30, random() % 2 == 0);
  one.options.chunk = random_rule(random, random() % 3 == 0);
  one.options.seed = random() % 4;
  one.options.shuffle = random() % 4 > 0;
  one.world = static_cast<std::uint32_t>(1 + random() % 3);
  if (one.world > one.catalog.size()) one.world = 1;
  const auto most = static_cast<std::uint32_t>(one.catalog.size() / one.world);
  one.options.slots = one.world * static_cast<std::uint32_t>(1 + random() % most);
  one.epoch = random() % 3;
  if (random() % 3 == 0) {
    const std::uint32_t width = one.options.chunk->width();
    one.options.width_buckets = {(width + 1) / 2, width};
    if (width == 1) one.options.width_buckets = {1};
  }
  return one;
}

template <class Test>
void with_stateful_plans(int rounds, std::uint64_t seed, Test test) {
  with_plans(rounds, seed, random_stateful, test);
}

// The rows of each slot of all ranks, step by step.
std::vector<std::vector<PlannedRow>> slots_of(const PlanCase& one, const EpochPlan& epoch) {
  std::vector<std::vector<PlannedRow>> slots(one.options.slots);
  const std::uint32_t each = one.options.slots / one.world;
  for (std::uint32_t rank = 0; rank < one.world; ++rank)
    for (const PlannedBatch& batch : batches_of(epoch, {.rank = {rank, one.world}})) {
      for (const PlannedRow& row : batch.framed) slots[rank * each + row.slot].push_back(row);
      for (const PlannedRow& row : batch.marks) slots[rank * each + row.slot].push_back(row);
    }
  return slots;
}

TEST_CASE("each stream is in one slot, with its live rows in their order", "[property]") {
  with_stateful_plans(300, 1, [](const PlanCase& one, const Plan& plan, std::mt19937_64&) {
    std::multiset<std::uint64_t> dealt, expected;
    for (std::uint64_t i = 0; i < one.catalog.size(); ++i)
      if (!live_rows(one, i).empty()) expected.insert(i);
    for (const auto& rows : slots_of(one, *plan.epoch(one.epoch))) {
      for (std::size_t at = 0; at < rows.size();) {
        const std::uint64_t stream = rows[at].stream;
        dealt.insert(stream);
        for (const CutRow& cut : live_rows(one, stream)) {
          REQUIRE(at < rows.size());
          REQUIRE(rows[at].stream == stream);
          REQUIRE(rows[at].row == cut.row);
          REQUIRE(rows[at].frame == cut.frame);
          ++at;
        }
      }
    }
    CHECK(dealt == expected);
  });
}

TEST_CASE("every frame is in one body per epoch", "[property]") {
  std::mt19937_64 random(2);
  for (int i = 0; i < 100; ++i) {
    PlanCase one = random_stateful(random);
    one.options.chunk->spec = {.size = one.options.chunk->spec.size, .left = 2, .right = 3};
    one.options.width_buckets.clear();
    std::vector<std::vector<int>> seen(one.catalog.size());
    for (std::uint64_t k = 0; k < seen.size(); ++k) seen[k].resize(one.catalog.frames(k));
    for (const auto& rows : slots_of(one, *plan_of(one.catalog, one.options)->epoch(one.epoch)))
      for (const PlannedRow& row : rows)
        for (std::uint32_t j = 0; j < row.row.size; ++j) ++seen[row.stream][row.frame + j];
    for (std::uint64_t k = 0; k < seen.size(); ++k) {
      const auto events = one.catalog.events(k);
      const bool aborts = !events.empty() && events.back().event.kind == Event::Kind::abort;
      for (const int count : seen[k]) REQUIRE((count == 1 || (aborts && count == 0)));
    }
  }
}

TEST_CASE("the batches of all ranks side by side are those of one rank", "[property]") {
  with_stateful_plans(300, 3, [](const PlanCase& one, const Plan& plan, std::mt19937_64&) {
    const auto epoch = plan.epoch(one.epoch);
    const std::vector<PlannedBatch> whole = batches_of(*epoch);
    std::vector<PlannedBatch> joined(whole.size());
    const std::uint32_t each = one.options.slots / one.world;
    for (std::uint32_t rank = 0; rank < one.world; ++rank) {
      const auto batches = batches_of(*epoch, {.rank = {rank, one.world}});
      REQUIRE(batches.size() == epoch->steps());  // ranks have equal steps
      for (std::size_t i = 0; i < batches.size(); ++i) {
        CHECK(batches[i].rows == each);
        CHECK(batches[i].width == whole[i].width);
        CHECK(batches[i].body == whole[i].body);
        joined[i].rows += batches[i].rows;
        append_rank(joined[i], batches[i], rank * each);
      }
    }
    for (std::size_t i = 0; i < whole.size(); ++i) {
      CHECK(joined[i].rows == whole[i].rows);
      REQUIRE(same_rows(joined[i].framed, whole[i].framed));
      REQUIRE(same_rows(joined[i].marks, whole[i].marks));
    }
  });
}

TEST_CASE("a cursor from any step with any stride gives these steps of the whole", "[property]") {
  with_stateful_plans(300, 4, [](const PlanCase& one, const Plan& plan, std::mt19937_64& random) {
    const auto epoch = plan.epoch(one.epoch);
    const Rank rank{static_cast<std::uint32_t>(random() % one.world), one.world};
    const auto whole = batches_of(*epoch, {.rank = rank});
    for (int i = 0; i < 4; ++i) {
      const std::uint64_t step = random() % (whole.size() + 2), stride = 1 + random() % 9;
      INFO("step " << step << " stride " << stride);
      auto expected = every(whole, step, stride);
      mark_opens(expected);
      REQUIRE(same(batches_of(*epoch, {rank, step, stride}), expected));
    }
  });
}

// The plan without shuffling, by its definition.
TEST_CASE("without shuffling the longest stream goes to the emptiest slot", "[property]") {
  std::mt19937_64 random(5);
  for (int i = 0; i < 200; ++i) {
    PlanCase one = random_stateful(random);
    one.options.shuffle = false;
    const auto plan = make_plan(one.catalog, one.options, {});
    if (!plan) continue;
    std::vector<std::uint64_t> order(one.catalog.size());
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::stable_sort(order, std::ranges::greater(),
                             [&](std::uint64_t k) { return one.catalog.frames(k); });
    std::vector<std::uint64_t> steps(one.options.slots), lengths(one.options.slots);
    std::vector<std::set<std::uint64_t>> slots(one.options.slots);  // in the order of the catalog
    for (const std::uint64_t k : order) {
      const auto rows = live_rows(one, k);
      const auto framed =
          std::ranges::count_if(rows, [](auto& cut) { return cut.row.has_frames(); });
      if (framed == 0) continue;
      const auto slot =
          static_cast<std::size_t>(std::ranges::min_element(lengths) - lengths.begin());
      lengths[slot] += one.catalog.frames(k);
      steps[slot] += static_cast<std::uint64_t>(framed);
      slots[slot].insert(k);
    }
    const auto epoch = (*plan)->epoch(one.epoch);
    CHECK(epoch->steps() == std::ranges::max(steps));
    one.world = 1;
    const auto planned_slots = slots_of(one, *epoch);
    for (std::size_t slot = 0; slot < slots.size(); ++slot) {
      std::vector<std::uint64_t> streams;
      for (const PlannedRow& row : planned_slots[slot])
        if (row.row.is(flag::start)) streams.push_back(row.stream);
      CHECK(streams == std::vector<std::uint64_t>(slots[slot].begin(), slots[slot].end()));
    }
  }
}

TEST_CASE("a stream begins with START and RESET, and never crosses the end of an epoch",
          "[property]") {
  with_stateful_plans(200, 6, [](const PlanCase& one, const Plan& plan, std::mt19937_64&) {
    for (const auto& rows : slots_of(one, *plan.epoch(one.epoch)))
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const bool first = i == 0 || rows[i].stream != rows[i - 1].stream;
        CHECK(rows[i].row.is(flag::start) == first);
        if (first) CHECK(rows[i].row.is(flag::reset));
        if (first) CHECK(rows[i].opens);
        if (i > 0 && first) CHECK(rows[i - 1].row.is(flag::end));
      }
  });
}

TEST_CASE("the totals of an epoch are those of its batches", "[property]") {
  with_stateful_plans(200, 7, [](const PlanCase& one, const Plan& plan, std::mt19937_64&) {
    const auto epoch = plan.epoch(one.epoch);
    const PlanTotals totals = epoch->totals();
    const PlanTotals counted = counted_totals(batches_of(*epoch));
    CHECK(totals.rows == counted.rows);
    CHECK(totals.padding_rows == counted.padding_rows);
    CHECK(totals.frames == counted.frames);
  });
}

TEST_CASE("rows fit into the width and the body of their batch", "[property]") {
  with_stateful_plans(200, 8, [](const PlanCase& one, const Plan& plan, std::mt19937_64&) {
    CHECK(plan.most_rows({0, one.world}) == one.options.slots / one.world);
    for (const PlannedBatch& batch : batches_of(*plan.epoch(one.epoch))) {
      CHECK(batch.width <= plan.most_columns());
      CHECK(batch.body <= plan.most_body());
      for (const PlannedRow& row : batch.framed) {
        const RowColumns columns = one.options.chunk->columns();
        CHECK(columns.needed(row.row.left, row.row.size, row.row.right) <= batch.width);
        CHECK(row.row.size <= batch.body);
      }
    }
  });
}

TEST_CASE("an epoch is the same each time, and differs from other epochs and seeds") {
  std::vector<std::uint64_t> lengths;
  for (std::uint64_t i = 0; i < 100; ++i) lengths.push_back(20 + i % 30);
  const ListedCatalog catalog(lengths);
  PlanOptions options;
  options.chunk.emplace();
  options.chunk->spec.size = 5;
  options.slots = 8;
  const auto first = all_batches(catalog, options);
  CHECK(same(all_batches(catalog, options), first));
  CHECK_FALSE(same(all_batches(catalog, options, 1), first));
  options.seed = 1;
  CHECK_FALSE(same(all_batches(catalog, options), first));
}

TEST_CASE("other lengths of an epoch are used where they are given") {
  const ListedCatalog catalog({10, 20, 30});
  PlanOptions options;
  options.chunk.emplace();
  options.chunk->spec.size = 5;
  options.slots = 2;
  options.frames = [](std::uint64_t epoch, std::uint64_t stream, std::uint32_t) {
    return 5 * (epoch + stream);
  };
  std::map<std::uint64_t, std::uint64_t> frames;
  for (const PlannedBatch& batch : all_batches(catalog, options, 2))
    for (const PlannedRow& row : batch.framed) frames[row.stream] += row.row.size;
  CHECK(frames == std::map<std::uint64_t, std::uint64_t>{{0, 10}, {1, 15}, {2, 20}});
}

}  // namespace
}  // namespace millrace::training
