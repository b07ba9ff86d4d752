// SPDX-License-Identifier: Apache-2.0
#include "checking/plan/checked_stream.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/checking/plan/streams.h"

using namespace millrace;
using namespace millrace::checking;

namespace {

const ChunkRule rule{.spec = {.size = 4, .left = 2}};

CheckedStream stream_of(const CheckedStream::Events& events,
                        std::vector<std::uint64_t> moves = {}) {
  return {counted_frames(12), {}, rule, events, moves};
}

int first_value(const CheckedStream& stream, std::size_t row) {
  return std::to_integer<int>(stream.window(stream.rows()[row]).front());
}

}  // namespace

TEST_CASE("a stream without events has one run, and each row has its window") {
  const CheckedStream stream = stream_of({});
  REQUIRE(stream.rows().size() == 4);  // the last one has no frames
  CHECK(stream.runs() == std::vector<std::uint32_t>{0});
  CHECK(first_value(stream, 0) == 1);
  CHECK(first_value(stream, 1) == 3);  // two frames before the body
  CHECK(stream.rows().back().row.is(flag::end));
}

TEST_CASE("a reset begins a run without left context") {
  const CheckedStream stream = stream_of({{6, {.kind = Event::Kind::reset}}});
  const auto runs = stream.runs();
  REQUIRE(runs.size() == 2);
  CHECK(first_value(stream, runs[1]) == 7);
  CHECK(stream.rows()[runs[1]].row.left == 0);
}

TEST_CASE("a gap moves positions but not frames") {
  const CheckedStream stream = stream_of({{4, {.kind = Event::Kind::gap, .count = 100}}});
  const CheckedRow& row = stream.rows()[stream.runs()[1]];
  CHECK(row.row.begin == 104);
  CHECK(row.frame == 4);
}

TEST_CASE("a row that lost its worker begins a run, and keeps its left context") {
  const CheckedStream stream = stream_of({}, {1});
  CHECK(stream.runs() == std::vector<std::uint32_t>{0, 1});
  const Row& row = stream.rows()[1].row;
  CHECK(row.reason == ResetReason::worker_lost);
  CHECK(row.is(flag::reset));
  CHECK(row.left == 2);
}

TEST_CASE("a marker row that lost its worker and the row after it are one run") {
  const CheckedStream stream = stream_of({{4, {.kind = Event::Kind::flush}}}, {1});
  REQUIRE_FALSE(stream.rows()[1].row.has_frames());
  REQUIRE(stream.rows()[2].row.has_frames());
  CHECK(stream.rows()[2].row.is(flag::reset));
  CHECK(stream.runs() == std::vector<std::uint32_t>{0, 1});
}

TEST_CASE("drawn streams have every kind of event, and the first one has none") {
  const auto streams = drawn_streams(40);
  CHECK(streams.front().runs().size() == 1);
  std::uint8_t flags = 0;
  std::size_t lost = 0;
  for (const CheckedStream& stream : streams)
    for (const CheckedRow& row : stream.rows()) {
      flags |= row.row.flags;
      lost += row.row.reason == ResetReason::worker_lost;
    }
  CHECK(flags == (flag::start | flag::reset | flag::segment | flag::gap | flag::last | flag::end |
                  flag::abort));
  CHECK(lost > 20);
}
