// SPDX-License-Identifier: Apache-2.0
#include "checking/plan/stage.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "tests/checking/plan/streams.h"

using namespace millrace;
using namespace millrace::checking;

namespace {

struct Plan {
  explicit Plan(BatchRule its_rule, std::uint32_t count = 12)
      : rule(std::move(its_rule)), streams(drawn_streams(count)) {
    Draws draws(7);
    stages = make_stages(streams, rule, draws);
  }

  BatchRule rule;
  std::vector<CheckedStream> streams;
  std::vector<Stage> stages;

  const Row& row_of(const PlannedRow& row) const { return streams[row.stream].rows()[row.row].row; }
};

std::vector<PlannedRow> rows_of(const PlannedBatch& batch) {
  std::vector<PlannedRow> rows = batch.framed;
  rows.insert(rows.end(), batch.marks.begin(), batch.marks.end());
  return rows;
}

const std::vector<BatchRule> rules{{.slots = 64, .rows = 8},
                                   {.slots = 8, .rows = 8, .row_buckets = {2, 4, 8}},
                                   {.slots = 3, .rows = 2},
                                   {.slots = 1, .rows = 1}};

}  // namespace

TEST_CASE("each stage has each row of each copy of a stream once, in order") {
  for (const BatchRule& rule : rules) {
    const Plan plan(rule);
    for (const Stage& stage : plan.stages) {
      std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> rows;
      for (const PlannedBatch& batch : stage.batches)
        for (const PlannedRow& row : rows_of(batch))
          rows[{row.stream, row.copy}].push_back(row.row);
      REQUIRE(rows.size() == plan.streams.size() * copies_of(stage));
      for (auto& [place, numbers] : rows) {
        const std::uint32_t stream = place.first;
        // the runs of the second stage are in the opposite order
        if (stage.name.starts_with("alone")) std::ranges::sort(numbers);
        REQUIRE(numbers.size() == plan.streams[stream].rows().size());
        for (std::uint32_t i = 0; i < numbers.size(); ++i) REQUIRE(numbers[i] == i);
      }
    }
  }
}

TEST_CASE("batches are those that a service could hand over") {
  for (const BatchRule& rule : rules) {
    const Plan plan(rule);
    for (const Stage& stage : plan.stages)
      for (const PlannedBatch& batch : stage.batches) {
        const auto framed = static_cast<std::uint32_t>(batch.framed.size());
        REQUIRE(framed + batch.marks.size() > 0);
        REQUIRE(batch.rows <= rule.rows);
        REQUIRE(batch.rows >= framed);
        REQUIRE((batch.rows > 0) == (framed > 0));
        if (!rule.row_buckets.empty() && framed > 0)
          REQUIRE(std::ranges::count(rule.row_buckets, batch.rows) == 1);
        REQUIRE(batch.marks.size() <= rule.slots);
        std::set<StreamId> streams;
        for (const PlannedRow& row : batch.framed) {
          REQUIRE(plan.row_of(row).has_frames());
          REQUIRE(streams.insert(row.id).second);
        }
        for (const PlannedRow& row : batch.marks) REQUIRE_FALSE(plan.row_of(row).has_frames());
      }
  }
}

// As the lanes promise it: a stream keeps its slot while it stays with a worker, alone, and all of
// its first rows at a worker have RESET.
TEST_CASE("a slot has one stream at a time, which begins with a fresh state") {
  for (const BatchRule& rule : rules) {
    const Plan plan(rule);
    for (const Stage& stage : plan.stages) {
      std::map<std::pair<std::uint32_t, std::uint32_t>, StreamId> holders;  // by worker and slot
      std::map<StreamId, std::pair<std::uint32_t, std::uint32_t>> places;
      for (const PlannedBatch& batch : stage.batches)
        for (const PlannedRow& row : rows_of(batch)) {
          const std::pair place(batch.worker, row.slot);
          REQUIRE(row.slot < rule.slots);
          if (row.opens) {
            REQUIRE(plan.row_of(row).is(flag::reset));
            REQUIRE(batch.alone);
            holders[place] = row.id;
            places[row.id] = place;
          }
          REQUIRE(holders.at(place) == row.id);
          REQUIRE(places.at(row.id) == place);
        }
    }
  }
}

TEST_CASE("a stream leaves its slot at its end, or where it moves to the other worker") {
  for (const BatchRule& rule : rules) {
    const Plan plan(rule);
    const Stage& last = plan.stages.back();
    std::map<std::pair<std::uint32_t, std::uint32_t>, PlannedRow> newest;
    for (const PlannedBatch& batch : last.batches)
      for (const PlannedRow& row : rows_of(batch)) {
        const std::pair place(batch.worker, row.slot);
        if (row.opens && newest.contains(place)) {
          const PlannedRow& before = newest.at(place);
          if (!plan.row_of(before).is(flag::end))
            REQUIRE(plan.streams[before.stream].rows()[before.row + 1].begins_run);
        }
        newest[place] = row;
      }
  }
}

TEST_CASE("a stream that moves is another one at each worker, and leaves without an END row") {
  for (const BatchRule& rule : rules) {
    const Plan plan(rule);
    for (const Stage& stage : plan.stages) {
      std::map<StreamId, PlannedRow> newest;
      for (const PlannedBatch& batch : stage.batches)
        for (const PlannedRow& row : rows_of(batch)) {
          const auto before = newest.find(row.id);
          REQUIRE(row.opens == (before == newest.end()));
          if (before != newest.end()) REQUIRE_FALSE(before->second.leaves);
          newest[row.id] = row;
        }
      for (const auto& [id, row] : newest) REQUIRE(row.leaves != plan.row_of(row).is(flag::end));
    }
  }
}

TEST_CASE("a batch is as wide as its widest row needs, in a width that the rule allows") {
  const Plan narrow({.slots = 8, .rows = 4, .columns = {.context = 2}});
  std::set<std::uint32_t> widths;
  for (const PlannedBatch& batch : narrow.stages[0].batches)
    if (batch.rows > 0) widths.insert(batch.width);
  CHECK(*widths.rbegin() == 12);
  CHECK(widths.size() > 2);
  const Plan one({.slots = 8, .rows = 4, .width_buckets = {12}, .columns = {.context = 2}});
  for (const PlannedBatch& batch : one.stages.back().batches) CHECK(batch.width == 12);
}

TEST_CASE("alone a run has a slot that its worker has never used") {
  for (const BatchRule& rule : rules) {
    const Plan plan(rule);
    for (const std::size_t stage : {0, 1}) {
      std::set<std::uint32_t> used;
      for (const PlannedBatch& batch : plan.stages[stage].batches) {
        const auto rows = rows_of(batch);
        REQUIRE(rows.size() == 1);
        REQUIRE(batch.worker == stage);
        const CheckedRow& row = plan.streams[rows[0].stream].rows()[rows[0].row];
        REQUIRE(rows[0].opens == row.begins_run);
        if (batch.fresh) used.clear();
        if (rows[0].opens) REQUIRE(used.insert(rows[0].slot).second);
      }
    }
  }
}

TEST_CASE("batches become full, also if they have more rows than there are streams") {
  for (const std::uint32_t rows : {1, 8, 16, 32, 64}) {
    const Plan plan({.slots = std::max(rows, 8u), .rows = rows}, 18);
    for (const std::size_t stage : {plan.stages.size() - 2, plan.stages.size() - 1})
      CHECK(std::ranges::any_of(plan.stages[stage].batches,
                                [&](auto& batch) { return batch.framed.size() == rows; }));
  }
}

TEST_CASE("together streams share batches, use slots again, and move") {
  const Plan plan({.slots = 16, .rows = 8});
  const auto& last = plan.stages.back().batches;
  CHECK(std::ranges::any_of(last, [](auto& batch) { return batch.framed.size() >= 5; }));
  CHECK(std::ranges::any_of(last, [](auto& batch) { return batch.framed.size() == 1; }));
  CHECK(
      std::ranges::any_of(last, [](auto& batch) { return batch.rows > 0 && batch.padding() > 0; }));
  CHECK(std::ranges::any_of(last,
                            [](auto& batch) { return batch.rows > 0 && batch.padding() == 0; }));
  std::map<std::tuple<std::uint32_t, std::uint32_t>, std::set<StreamId>> by_slot;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::set<std::uint32_t>> by_stream;
  for (const PlannedBatch& batch : last)
    for (const PlannedRow& row : rows_of(batch)) {
      by_slot[{batch.worker, row.slot}].insert(row.id);
      by_stream[{row.stream, row.copy}].insert(batch.worker);
    }
  CHECK(std::ranges::count_if(by_slot, [](auto& slot) { return slot.second.size() > 1; }) >= 4);
  CHECK(std::ranges::count_if(by_stream, [](auto& moved) { return moved.second.size() > 1; }) >= 4);
  CHECK(by_slot.contains({0, 15}));  // the last slot
}

TEST_CASE("a batch of one row has no padding rows") {
  for (const Stage& stage : Plan({.slots = 4, .rows = 1}).stages)
    for (const PlannedBatch& batch : stage.batches) CHECK(batch.rows <= 1);
}
