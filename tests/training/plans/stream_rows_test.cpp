// SPDX-License-Identifier: Apache-2.0
// The rows of one stream in a plan are the rows of the live stream.
#include <catch2/catch.hpp>
#include <random>
#include <vector>

#include "chunker/rule_json.h"
#include "tests/support/sampled.h"
#include "tests/training/plans/listed_catalog.h"
#include "tests/training/plans/service_rows.h"
#include "training/plans/rows/stream_cutter.h"
#include "training/plans/rows/stream_steps.h"

namespace millrace::training {
namespace {

// Marker rows follow the row with frames before them.
std::vector<CutRow> rows_from(const StreamCutter& cutter, const StreamRef& stream,
                              std::uint64_t step, std::uint64_t stride) {
  std::vector<CutRow> rows;
  StreamSteps steps;
  steps.open(cutter, stream, step);
  while (!steps.ended()) {
    rows.push_back(steps.row());
    std::vector<PlannedRow> marks;
    steps.add_marks(0, marks);
    for (const PlannedRow& mark : marks) rows.push_back({mark.row, mark.frame});
    steps.advance(stride);
  }
  return rows;
}

bool equal(const std::vector<CutRow>& a, const std::vector<CutRow>& b) {
  return std::ranges::equal(
      a, b, [](const CutRow& x, const CutRow& y) { return x.row == y.row && x.frame == y.frame; });
}

// Every stride-th row with frames from `step` on, with the marker rows after each.
std::vector<CutRow> every(const std::vector<CutRow>& rows, std::uint64_t step,
                          std::uint64_t stride) {
  std::vector<CutRow> some;
  std::uint64_t framed = 0;
  for (const CutRow& cut : rows) {
    if (cut.row.has_frames()) ++framed;
    if (framed > step && (framed - 1 - step) % stride == 0) some.push_back(cut);
  }
  return some;
}

struct RowsCase {
  PlanOptions options;
  ListedCatalog catalog;
  StreamRef stream;
  std::vector<CutRow> live;
  std::uint64_t epoch = 0;
};

RowsCase random_case(std::mt19937_64& random, bool sizes, bool events) {
  RowsCase one;
  const std::uint64_t frames = random() % 60;
  one.options.chunk = random_rule(random, sizes);
  one.catalog = ListedCatalog({frames});
  one.epoch = random() % 3;
  if (events) {
    auto all = random_events(frames, random);
    if (random() % 4 == 0)
      all.insert(all.begin(), {{.count = 1 + random() % 500, .rows = random() % 50}, 0});
    one.catalog.add_events(0, std::move(all));
  }
  one.stream = {0, frames, one.catalog.has_events(0)};
  ChunkRule rule = *one.options.chunk;
  if (rule.sizes.by == SizeRule::By::adaptive) rule.sizes.by = SizeRule::By::fixed;
  rule.sizes.seed += one.epoch;
  one.live =
      planned(service_rows(rule, one.catalog.name(0), one.catalog.events(0), frames, random));
  return one;
}

void check(const RowsCase& one, std::mt19937_64& random) {
  INFO(to_json(*one.options.chunk) << " epoch " << one.epoch << " frames " << one.stream.frames);
  const StreamCutter cutter(one.catalog, one.options, one.epoch);
  REQUIRE(equal(rows_from(cutter, one.stream, 0, 1), one.live));
  const std::uint64_t step = random() % 20, stride = 1 + random() % 6;
  REQUIRE(equal(rows_from(cutter, one.stream, step, stride), every(one.live, step, stride)));
  RowCounts counts;
  for (const CutRow& cut : one.live) {
    if (cut.row.has_frames()) ++counts.framed;
    counts.frames += cut.row.size;
  }
  CHECK(cutter.counts(one.stream).framed == counts.framed);
  CHECK(cutter.counts(one.stream).frames == counts.frames);
}

TEST_CASE("a plan has the live rows of streams without inner events", "[property]") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 8000; ++i) check(random_case(random, i % 2 == 0, false), random);
}

// Both sides have a Cutter. What can fail: the seed and the rule of the epoch, which events are
// taken, where they enter, the marker rows, the counts, and that a plan enters a stream anywhere.
TEST_CASE("a plan has the live rows of streams with inner events", "[property]") {
  std::mt19937_64 random(2);
  for (int i = 0; i < test::sampled(3000); ++i)
    check(random_case(random, i % 2 == 0, true), random);
}

// The frames of the bodies of a stream.
std::vector<std::uint32_t> bodies(const RowsCase& one) {
  std::vector<std::uint32_t> sizes;
  const StreamCutter cutter(one.catalog, one.options, one.epoch);
  for (const CutRow& cut : rows_from(cutter, one.stream, 0, 1)) sizes.push_back(cut.row.size);
  return sizes;
}

RowsCase sized_case(SizeRule::By by, std::vector<InnerEvent> events) {
  RowsCase one;
  one.options.chunk.emplace();
  one.options.chunk->spec.size = 3;
  one.options.chunk->sizes = {.by = by, .sizes = SizeList(std::vector<std::uint32_t>{3, 4, 7})};
  one.catalog = ListedCatalog({17});
  one.catalog.add_events(0, std::move(events));
  one.stream = {0, 17, true};
  return one;
}

InnerEvent size_event(std::uint64_t size, std::uint64_t frame, Cause cause) {
  return {{.kind = Event::Kind::size, .cause = cause, .count = size}, frame};
}

TEST_CASE("a stream with size events has these sizes") {
  const RowsCase one = sized_case(SizeRule::By::adaptive,
                                  {size_event(7, 0, Cause::load), size_event(4, 7, Cause::load)});
  CHECK(bodies(one) == std::vector<std::uint32_t>{7, 4, 4, 2});
}

TEST_CASE("a size that the rule does not have is left out") {
  const RowsCase one = sized_case(SizeRule::By::adaptive, {size_event(5, 0, Cause::load)});
  CHECK(bodies(one) == std::vector<std::uint32_t>{3, 3, 3, 3, 3, 2});
}

TEST_CASE("the rule random draws again, except for a size that the client requested") {
  RowsCase drawn = sized_case(SizeRule::By::random, {size_event(7, 0, Cause::drawn)});
  RowsCase none = sized_case(SizeRule::By::random, {});
  none.stream.events = false;
  bool other = false;
  for (drawn.epoch = none.epoch = 0; drawn.epoch < 10; none.epoch = ++drawn.epoch) {
    CHECK(bodies(drawn) == bodies(none));
    other = other || bodies(drawn).front() != 7;
  }
  CHECK(other);
  const RowsCase requested = sized_case(SizeRule::By::random, {size_event(7, 0, Cause::client)});
  CHECK(bodies(requested) == std::vector<std::uint32_t>{7, 7, 3});
}

}  // namespace
}  // namespace millrace::training
