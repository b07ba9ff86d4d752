// SPDX-License-Identifier: Apache-2.0
#include "chunker/chunker.h"

#include <catch2/catch.hpp>
#include <string>

#include "tests/chunker/events.h"

namespace millrace {
namespace {

constexpr std::uint64_t huge = std::uint64_t{1} << 52;

// The reason of the RESET of each row.
std::vector<std::string> reasons(const std::vector<Row>& rows) {
  std::vector<std::string> all;
  for (const Row& row : rows) all.emplace_back(name_of(row.reason));
  return all;
}

using Words = std::vector<std::string>;

TEST_CASE("a stream without frames is one marker row") {
  CHECK(columns(rows_of({.size = 4}, {open(), end()})) == Columns{{0, 0, 0, 0, 0, 55, 0}});
}

TEST_CASE("a stream that is opened anew continues positions and numbers with a reset") {
  const auto rows = rows_of({.size = 4, .first = 2, .left = 3},
                            {open(100, 7), frames(7), flush(9), frames(1), end()});
  CHECK(columns(rows) == Columns{{7, 100, 0, 2, 0, 6, 0},
                                 {8, 102, 2, 4, 0, 0, 0},
                                 {9, 106, 3, 1, 0, 16, 0},
                                 {10, 107, 3, 1, 0, 52, 0}});
  CHECK(reasons(rows) == Words{"failover", "none", "none", "none"});
  CHECK(rows[2].mark == 9);
}

TEST_CASE("the reset of an open anew stays due until a row with frames has carried it") {
  const auto rows = rows_of({.size = 4}, {open(8, 2), flush(), frames(4), end()});
  CHECK(columns(rows) ==
        Columns{{2, 8, 0, 0, 0, 22, 0}, {3, 8, 0, 4, 0, 6, 0}, {4, 12, 0, 0, 0, 48, 0}});
  CHECK(reasons(rows) == Words{"failover", "failover", "none"});
}

TEST_CASE("an open at row 0 or at position 0 is one anew unless both are 0") {
  for (const Event& event : {open(4, 0), open(0, 1)})
    CHECK(reasons(rows_of({.size = 2}, {event, end()})) == Words{"failover"});
  CHECK(reasons(rows_of({.size = 2}, {open(0, 0), end()})) == Words{"start"});
}

TEST_CASE("an open anew may be at the largest position") {
  Chunker chunker({.size = 2, .left = 1});
  chunker.add(open(max_position, huge));
  CHECK_FALSE(chunker.next());
  CHECK(chunker.keep_from() == max_position);
  CHECK(chunker.position() == max_position);
  chunker.add(end());
  CHECK(columns({*chunker.next()}) == Columns{{huge, max_position, 0, 0, 0, 54, 0}});
}

TEST_CASE("a row is ready with the last frame of its window, not before") {
  Chunker chunker({.size = 4, .right = 2});
  chunker.add(frames(5));
  CHECK_FALSE(chunker.next());
  CHECK(chunker.frames_until_next() == 1);
  chunker.add(frames(1));
  CHECK(chunker.frames_until_next() == 0);
  CHECK(chunker.next());
  CHECK_FALSE(chunker.next());
  CHECK(chunker.frames_until_next() == 4);
}

TEST_CASE("the rows of one event are taken one at a time") {
  Chunker chunker({.size = 2});
  chunker.add(frames(5));
  CHECK(chunker.next()->begin == 0);
  CHECK(chunker.keep_from() == 2);
  CHECK(chunker.next()->begin == 2);
  CHECK_FALSE(chunker.next());
}

TEST_CASE("LAST is on the last row of a segment") {
  CHECK(columns(rows_of({.size = 4, .step = 2}, {frames(5), end()})) ==
        Columns{{0, 0, 0, 4, 0, 7, 0}, {1, 2, 0, 3, 0, 0, 0}, {2, 4, 0, 1, 0, 48, 0}});
}

TEST_CASE("if the tail is too short, LAST is on the row before it or on a marker row") {
  const Spec spec{.size = 4, .step = 2, .min = 2};
  CHECK(columns(rows_of(spec, {frames(5), end()})) ==
        Columns{{0, 0, 0, 4, 0, 7, 0}, {1, 2, 0, 3, 0, 48, 0}});
  CHECK(columns(rows_of({.size = 4, .min = 2}, {frames(5), end()})) ==
        Columns{{0, 0, 0, 4, 0, 7, 0}, {1, 5, 0, 0, 0, 48, 0}});
}

TEST_CASE("the row that ends a flushed segment carries its mark, and no other does") {
  const auto rows =
      rows_of({.size = 2}, {frames(3), flush(7), flush(8), frames(1), flush(), end()});
  std::vector<std::optional<std::uint64_t>> marks;
  for (const Row& row : rows) marks.push_back(row.mark);
  CHECK(marks == decltype(marks){{}, 7, 8, {}, {}});
}

TEST_CASE("a RESET has a reason") {
  const auto reason_after = [](const Event& event) {
    return name_of(rows_of({.size = 2}, {frames(2), event, frames(2), end()}).at(2).reason);
  };
  CHECK(reason_after(reset()) == "client");
  CHECK(reason_after(reset(Cause::endpoint)) == "endpoint");
  CHECK(reason_after(gap(3)) == "gap");
  CHECK(reason_after(gap(3, Cause::rejected)) == "gap");
  CHECK(reason_after(gap(3, Cause::load)) == "overflow");
  CHECK(reason_after(flush()) == "none");
}

TEST_CASE("a reset and its reason stay due until a row with frames carried them") {
  CHECK(reasons(rows_of({.size = 2}, {flush(), flush(), frames(4), end()})) ==
        Words{"start", "start", "start", "none", "none"});
}

TEST_CASE("if two resets apply to the same row, it has the reason of the later one") {
  CHECK(reasons(rows_of({.size = 2}, {gap(3), reset(Cause::endpoint), gap(1, Cause::load),
                                      frames(2), end()})) == Words{"gap", "overflow", "none"});
}

TEST_CASE("gaps before the first frame of a segment add up, and end no segment") {
  CHECK(columns(rows_of({.size = 2}, {gap(3), gap(4), frames(2), end()})) ==
        Columns{{0, 7, 0, 2, 0, 15, 7}, {1, 9, 0, 0, 0, 48, 0}});
}

TEST_CASE("an abort drops the frames that are in no ready row") {
  CHECK(columns(rows_of({.size = 2}, {frames(3), abort_stream()})) ==
        Columns{{0, 0, 0, 2, 0, 7, 0}, {1, 3, 0, 0, 0, 112, 0}});
}

TEST_CASE("a smaller size makes rows of the frames that had arrived") {
  CHECK(columns(rows_of({.size = 9}, {frames(5), size(2)})) ==
        Columns{{0, 0, 0, 2, 0, 7, 0}, {1, 2, 0, 2, 0, 0, 0}});
}

TEST_CASE("a step longer than the body skips frames, but a flush ends the skipping") {
  Chunker chunker({.size = 2, .step = 5});
  chunker.add(frames(3));
  CHECK(chunker.next()->end() == 2);
  CHECK_FALSE(chunker.next());
  CHECK(chunker.keep_from() == 3);
  CHECK(chunker.frames_until_next() == 4);
  chunker.add(flush());
  CHECK(chunker.next()->size == 0);
  CHECK(chunker.frames_until_next() == 2);
}

TEST_CASE("left context is kept within a run, and dropped after a gap") {
  Chunker chunker({.size = 4, .left = 3});
  chunker.add(frames(8));
  while (chunker.next()) {
  }
  CHECK(chunker.keep_from() == 5);
  chunker.add(gap(10));
  CHECK(chunker.position() == 18);
  while (chunker.next()) {
  }
  CHECK(chunker.keep_from() == 18);
}

TEST_CASE("positions are exact up to the largest") {
  Chunker chunker({.size = 3, .left = 2});
  chunker.add(gap(huge));
  chunker.add(frames(huge));
  CHECK(chunker.position() == max_position);
  CHECK(columns({*chunker.next()}) == Columns{{0, huge, 0, 3, 0, 15, huge}});
  CHECK(columns({*chunker.next()}) == Columns{{1, huge + 3, 2, 3, 0, 0, 0}});
}

TEST_CASE("a gap over nearly all positions makes one row") {
  CHECK(columns(rows_of({.size = 2}, {frames(1), gap(max_position - 2), frames(1), end()})) ==
        Columns{{0, 0, 0, 1, 0, 23, 0}, {1, max_position - 1, 0, 1, 0, 62, max_position - 2}});
}

TEST_CASE("the overlapping rows at the end of a segment are made one by one") {
  Chunker chunker({.size = 2'000'000'000, .step = 1});
  chunker.add(frames(1'999'999'999));
  CHECK_FALSE(chunker.next());
  chunker.add(flush());
  CHECK(chunker.next()->size == 1'999'999'999);
  CHECK(chunker.next()->size == 1'999'999'998);
}

TEST_CASE("if every body of the tail is too short, the stream ends at once") {
  Chunker chunker({.size = 2'000'000'000, .step = 1, .min = 2'000'000'000});
  chunker.add(frames(1'999'999'999));
  chunker.add(end());
  CHECK(chunker.next()->is(flag::end));
  CHECK(chunker.ended());
}

}  // namespace
}  // namespace millrace
