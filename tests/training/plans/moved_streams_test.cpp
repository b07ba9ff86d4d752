// SPDX-License-Identifier: Apache-2.0
// Streams that were lost and opened anew have the rows and frames that the services gave.
#include <algorithm>
#include <cstring>
#include <random>

#include "recording/reader/joined_reader.h"
#include "tests/recording/reader/moved_streams.h"
#include "tests/support/sampled.h"
#include "tests/training/plans/service_rows.h"
#include "training/catalogs/open_catalog.h"
#include "training/catalogs/selection.h"
#include "training/plans/rows/stream_cutter.h"
#include "training/plans/rows/stream_steps.h"

namespace millrace::training {
namespace {

using recordings::Moved;
using recordings::RecordedDirectory;
using recordings::TestStream;
using Values = std::vector<std::int16_t>;
using SharedCatalog = std::shared_ptr<const Catalog>;

constexpr std::uint64_t part_values = 1000;  // the values of the next part are larger by this

// A row with the values of its window.
struct WindowRow {
  Row row;
  Values window;
  bool operator==(const WindowRow&) const = default;
};

// A rule whose recorded sizes count, or which has one size.
ChunkRule recorded_rule(std::mt19937_64& random, bool sizes) {
  ChunkRule rule = random_rule(random, sizes);
  if (!sizes) return rule;
  rule.spec.first = 0;
  rule.sizes.by = SizeRule::By::adaptive;
  rule.sizes.seed = 0;
  return rule;
}

Moved random_moves(std::mt19937_64& random, const ChunkRule& rule, std::uint64_t most) {
  std::vector<std::uint32_t> sizes;
  if (!rule.sizes.sizes.empty()) sizes = {3, 4, 7};
  return recordings::moved(random, rule.chunker_spec(), recordings::random_events(random, sizes),
                           most);
}

void record(RecordedDirectory& directory, const ChunkRule& rule, const Moved& moved) {
  for (std::size_t i = 0; i < moved.parts.size(); ++i) {
    TestStream stream = recordings::part_of(i + 1, static_cast<std::uint32_t>(i), rule);
    stream.added = i * part_values;
    recordings::write(directory, stream, moved.parts[i]);
  }
}

SharedCatalog open_good(const RecordedDirectory& directory, bool cuts_events = true) {
  ::setenv("XDG_CACHE_HOME", directory.path().c_str(), 1);
  auto opened = open_catalog({.path = directory.path(), .cuts_events = cuts_events});
  if (!opened) FAIL(opened.error().message);
  return std::move(*opened);
}

// The rows that the clients got: those of each service up to the row of the next one. Each service
// cuts its own part.
std::vector<WindowRow> served_rows(const Moved& moved, const ChunkRule& rule) {
  std::vector<WindowRow> served;
  for (std::size_t i = 0; i < moved.parts.size(); ++i)
    for (const Resumable& one : cut(rule.chunker_spec(), moved.parts[i])) {
      if (!moved.counts(i, one.row)) continue;
      WindowRow& row = served.emplace_back(WindowRow{.row = one.row, .window = {}});
      for (std::uint32_t k = 0; one.row.has_frames() && k < one.row.window(); ++k)
        row.window.push_back(
            static_cast<std::int16_t>(one.row.window_begin() + k + 1 + i * part_values));
    }
  // Plans give no marker rows before the first row with frames.
  const auto first =
      std::ranges::find_if(served, [](const WindowRow& row) { return row.row.has_frames(); });
  const bool anew = !served.empty() && !served.front().row.is(flag::start);
  served.erase(served.begin(), first);
  if (!served.empty() && !anew) served.front().row.flags |= flag::start;
  return served;
}

Values values_at(FrameReader& reader, std::uint64_t begin, std::uint64_t count) {
  const auto frames = reader.frames(begin, count);
  if (!frames) FAIL(frames.error().message);
  Values values(frames->size() / sizeof(std::int16_t));
  if (!values.empty()) std::memcpy(values.data(), frames->data(), frames->size());
  return values;
}

std::vector<WindowRow> trained_rows(const Catalog& catalog, const ChunkRule& rule,
                                    std::uint64_t stream = 0) {
  PlanOptions options;
  options.chunk = rule;
  const StreamCutter cutter(catalog, options, 0);
  const auto readers = catalog.reader();
  const auto reader = std::move(*readers->open(stream));
  std::vector<WindowRow> rows;
  StreamSteps steps;
  for (steps.open(cutter, {stream, catalog.frames(stream), catalog.has_events(stream)}, 0);
       !steps.ended(); steps.advance(1)) {
    const CutRow cut = steps.row();
    rows.push_back({cut.row, values_at(*reader, cut.frame - cut.row.left, cut.row.window())});
    std::vector<PlannedRow> marks;
    steps.add_marks(0, marks);
    for (const PlannedRow& mark : marks) rows.push_back({mark.row, {}});
  }
  return rows;
}

// The positions of the frames of all bodies, without the values of the parts.
Values bodies(const Catalog& catalog, const ChunkRule& rule) {
  Values values;
  for (std::uint64_t stream = 0; stream < catalog.size(); ++stream)
    for (const WindowRow& one : trained_rows(catalog, rule, stream))
      for (std::uint32_t k = 0; k < one.row.size; ++k)
        values.push_back(one.window[one.row.left + k]);
  return values;
}

Moved two_parts() {
  return {.uncut = {},
          .parts = {{open(), frames(14), abort_stream()}, {open(8, 2), frames(12), end()}}};
}

}  // namespace

TEST_CASE("the rows of a stream that moved are those that the services gave", "[property]") {
  std::mt19937_64 random(5);
  std::size_t moves = 0;
  for (int round = 0; round < test::sampled(1200); ++round) {
    const ChunkRule rule = recorded_rule(random, round % 3 == 0);
    const Moved moved = random_moves(random, rule, 2);
    moves += moved.parts.size() - 1;
    INFO("round " << round << ": " << to_json(rule) << ", parts " << moved.parts.size());
    RecordedDirectory directory;
    record(directory, rule, moved);
    const auto catalog = open_good(directory);
    REQUIRE(catalog->size() == 1);
    const auto trained = trained_rows(*catalog, rule), served = served_rows(moved, rule);
    REQUIRE(trained == served);
    REQUIRE(trained_rows(*open_good(directory), rule) == served);  // by its index
  }
  CHECK(moves > 100);
}

TEST_CASE("whole streams that moved have each frame once, and no events") {
  std::mt19937_64 random(6);
  for (int round = 0; round < 60; ++round) {
    const ChunkRule rule = recorded_rule(random, false);
    const Moved moved = random_moves(random, rule, 2);
    RecordedDirectory directory;
    record(directory, rule, moved);
    const auto catalog = open_good(directory, false);
    std::uint64_t frames = 0;
    for (const Event& event : moved.uncut)
      if (event.kind == Event::Kind::frames) frames += event.count;
    REQUIRE(catalog->frames(0) == frames);
    CHECK((moved.parts.size() == 1 || !catalog->has_events(0)));
    const auto readers = catalog->reader();
    const auto reader = std::move(*readers->open(0));
    Values values;
    for (std::int16_t value : values_at(*reader, 0, frames))
      values.push_back(static_cast<std::int16_t>(value % part_values));
    CHECK(std::ranges::is_sorted(values));
    CHECK(std::ranges::adjacent_find(values) == values.end());
  }
}

TEST_CASE("another rule begins anew at the place, and loses at most a chunk before it") {
  RecordedDirectory directory;
  record(directory, {.spec = {.size = 4, .right = 2}}, two_parts());
  const auto rows = trained_rows(*open_good(directory), {.spec = {.size = 3}});
  // Of the part before, the frames up to position 10 count. The body at 6 reaches over the place.
  const std::vector<std::uint64_t> begins{0, 3, 6, 8, 11, 14, 17, 20};
  REQUIRE(rows.size() == begins.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CHECK(rows[i].row.begin == begins[i]);
    CHECK(rows[i].row.seq == i);
  }
  CHECK(rows[3].row.reason == ResetReason::failover);
  CHECK(rows[3].row.is(flag::start) == false);
  CHECK(rows[3].window == Values{1009, 1010, 1011});
}

// The parts of `longest` frames: [0, 9) and [9, 18) of 22, which begin before and behind the place.
TEST_CASE("the parts of a long stream that moved have its frames in order") {
  RecordedDirectory directory;
  record(directory, {.spec = {.size = 4, .right = 2}}, two_parts());
  const auto catalog = select_streams(open_good(directory), {.longest = 9});
  REQUIRE(catalog.has_value());
  CHECK(bodies(**catalog, {.spec = {.size = 4, .right = 2}}) ==
        Values{1,    2,    3,    4,    5,    6,    7,    8,    9,    1009, 1010,
               1011, 1012, 1013, 1014, 1015, 1016, 1017, 1018, 1019, 1020});
  const auto later = trained_rows(**catalog, {.spec = {.size = 4}}, 1);
  CHECK(later.front().row.begin == 0);
  CHECK(later.front().row.is(flag::start));
  CHECK(later.front().window == Values{1009, 1010, 1011, 1012});
}

TEST_CASE("a part of a long stream counts the positions from its begin, also after a move") {
  RecordedDirectory directory;
  record(directory, {.spec = {.size = 4, .right = 2}}, two_parts());
  const auto catalog = select_streams(open_good(directory), {.longest = 6});
  REQUIRE(catalog.has_value());
  const auto rows = trained_rows(**catalog, {.spec = {.size = 2}}, 1);  // positions 6 to 10
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].window == Values{7, 8});
  CHECK(rows[1].window == Values{1009, 1010});
  CHECK(rows[1].row.begin == 2);
  CHECK(rows[1].row.seq == 1);
  CHECK(rows[1].row.reason == ResetReason::failover);
  CHECK(rows[2].row.is(flag::end));
}

}  // namespace millrace::training
