// SPDX-License-Identifier: Apache-2.0
#include "load/row_check.h"

#include <catch2/catch.hpp>
#include <optional>
#include <vector>

#include "chunker/chunker.h"
#include "chunker/row_layout.h"
#include "tests/load/checked_rows.h"

using namespace millrace;
using namespace millrace::load;
using namespace std::chrono_literals;

namespace {

// The rows of `before` frames, a gap, `behind` frames after it, and an end.
std::vector<Row> rows_of(const Spec& spec, std::uint64_t before, std::uint64_t gap,
                         std::uint64_t behind) {
  using Kind = Event::Kind;
  Chunker chunker(spec);
  std::vector<Row> rows;
  for (const Event& event :
       {Event{Kind::frames, Cause::client, before}, Event{Kind::gap, Cause::load, gap},
        Event{Kind::frames, Cause::client, behind}, Event{Kind::end}}) {
    if (event.kind != Kind::end && event.count == 0) continue;
    chunker.add(event);
    while (const auto row = chunker.next()) rows.push_back(*row);
  }
  return rows;
}

using Tail = Spec::Tail;
const ChunkRule rules[] = {
    {.spec = {.size = 100}},
    {.spec = {.size = 100, .min = 40}},
    {.spec = {.size = 100, .tail = Tail::drop}},
    {.spec = {.size = 100, .step = 75}, .align = Align::packed},
    {.spec = {.size = 100, .step = 30, .tail = Tail::cover}},
    {.spec = {.size = 100, .step = 75, .tail = Tail::drop}},
    {.spec = {.size = 100, .step = 75, .first = 130, .left = 20, .right = 30}},
    {.spec = {.size = 20, .step = 100, .left = 5}},
    {.spec = {.size = 64, .first = 67, .left = 3}, .align = Align::packed},
    {.spec = {.size = 64, .first = 67, .left = 3, .right = 7}},
    {.spec = {.size = 100, .right = 50, .tail = Tail::drop}},
};

}  // namespace

TEST_CASE("rows in order with the sent values are correct") {
  CheckedRows at;
  for (std::uint64_t n = 0; n < 3; ++n) at.add(at.row(n));
  RowEntry last = at.row(3);
  last.flags = flag::end | flag::last;
  at.add(last);
  CHECK(at.seen().framed == 4);
  CHECK(at.seen().lost + at.seen().repeated + at.seen().damaged + at.seen().unknown == 0);
  CHECK(at.seen().frames_ended == 4 * packet);
}

TEST_CASE("for any rule, the rows of the chunker are correct, with and without a gap") {
  for (const ChunkRule& rule : rules) {
    for (const std::uint64_t before : {0, 99, 100, 130, 727}) {
      for (const std::uint64_t gap : {0, 500}) {
        for (const std::uint64_t behind : {0, 1, 1000}) {
          CAPTURE(rule.spec.size, rule.spec.step, name_of(rule.spec.tail), before, gap, behind);
          CheckedRows at(Phase::uniform, rule);
          for (const Row& row : rows_of(rule.spec, before, gap, behind)) at.add(row);
          CHECK(at.seen().lost + at.seen().repeated + at.seen().damaged == 0);
          CHECK(at.seen().shed == gap);
          CHECK(at.seen().ended == 1);
          CHECK(at.seen().unended == 0);
          CHECK(at.seen().frames_ended == before + gap + behind);
        }
      }
    }
  }
}

TEST_CASE("for any rule, missing rows and duplicate rows are detected") {
  for (const ChunkRule& rule : rules) {
    const auto rows = rows_of(rule.spec, 705, 0, 0);
    CAPTURE(rule.spec.size, rule.spec.step, name_of(rule.spec.tail));
    for (std::size_t n = 0; n + 1 < rows.size(); ++n) {
      CheckedRows without(Phase::uniform, rule), twice(Phase::uniform, rule);
      for (const Row& row : rows) {
        if (&row != &rows[n]) without.add(row);
        twice.add(row);
        if (&row == &rows[n]) twice.add(row);
      }
      CAPTURE(n, rows.size());
      CHECK(without.seen().lost > 0);
      CHECK(twice.seen().repeated == 1);
    }
  }
}

TEST_CASE("a duplicate marker row is detected, whatever its flags") {
  for (const ChunkRule& rule : rules) {
    const auto rows = rows_of(rule.spec, 700, 300, 100);  // the gap ends a segment
    for (const Row& doubled : rows) {
      if (doubled.has_frames()) continue;
      CheckedRows at(Phase::uniform, rule);
      for (const Row& row : rows) {
        at.add(row);
        if (&row == &doubled) at.add(row);
      }
      CHECK(at.seen().repeated == 1);
    }
  }
}

TEST_CASE("for any rule, a wrong value of any row is damage") {
  for (const ChunkRule& rule : rules) {
    CAPTURE(rule.spec.size, rule.spec.step, name_of(rule.spec.tail));
    for (const Row& row : rows_of(rule.spec, 705, 0, 0)) {
      if (!row.has_frames()) continue;
      CheckedRows at(Phase::uniform, rule);
      auto values = at.tensor_row(row);
      const RowLayout layout = row_layout(row, rule, rule.spec.width());
      values[2 * (layout.lead + layout.window) - 1] ^= std::byte{1};
      at.row_check.check({.stream = stream,
                          .begin = row.begin,
                          .left = row.left,
                          .size = row.size,
                          .right = row.right},
                         values, start);
      CHECK(at.seen().damaged == 1);
    }
  }
}

TEST_CASE("a missing row is lost, unless a gap reports it") {
  CheckedRows at;
  at.add(at.row(0));
  at.add(at.row(2));
  CHECK(at.seen().lost == packet);
  RowEntry after_gap = at.row(4);
  after_gap.gap = packet;
  after_gap.flags = flag::gap;
  at.add(after_gap);
  CHECK(at.seen().lost == packet);
  CHECK(at.seen().shed == packet);
}

TEST_CASE("duplicate and late rows are counted as repeated") {
  CheckedRows at;
  at.add(at.row(0));
  at.add(at.row(0));
  at.add(at.row(1));
  at.add(at.row(0));
  CHECK(at.seen().repeated == 2);
}

TEST_CASE("a row with a wrong value, or with values of another packet, is damaged") {
  CheckedRows at;
  auto values = at.sent(0);
  values[3199] ^= std::byte{1};
  at.row_check.check(at.row(0), values, start);
  at.row_check.check(at.row(1), at.sent(2), start);
  CHECK(at.seen().damaged == 2);
}

TEST_CASE("rows of streams of another run are counted, but not checked") {
  CheckedRows at;
  const StreamId other{78};
  at.row_check.open(other, "somebody-else");
  at.row_check.check({.stream = other, .begin = 5, .size = packet}, at.sent(0), start);
  CHECK(at.seen().unknown == 1);
  CHECK(at.seen().framed == 0);
}

TEST_CASE("the time of a row starts when the last packet of its window was due") {
  CheckedRows at;
  const Time due = at.schedule.due(1, 5);
  at.row_check.check(at.row(0), at.sent(0), due + 2ms);
  CHECK(at.seen().rows.all().greatest() == 2ms);
  CheckedRows wide;  // the window ends with the next packet
  RowEntry row = wide.row(0);
  row.right = 400;
  wide.row_check.check(row, wide.sent(0), due + 103ms);
  CHECK(wide.seen().rows.all().greatest() == 3ms);
}

TEST_CASE("the last row of a segment has no time") {
  CheckedRows at;
  RowEntry row = at.row(0);
  row.flags = flag::last;
  at.add(row);
  CHECK(at.seen().rows.all().count() == 0);
}

TEST_CASE("the time of an ABORT is recorded, and the frames of its stream do not count") {
  CheckedRows at;
  at.add(at.row(0));
  CHECK(at.seen().unended == 1);
  at.row_check.check_mark(
      {.stream = stream, .seq = 1, .begin = packet, .flags = flag::abort | flag::end}, start + 1s);
  CHECK(at.seen().aborts == std::map<LoadStreamId, Time>{{{1, 5}, start + 1s}});
  CHECK(at.seen().unended + at.seen().ended + at.seen().frames_ended == 0);
}

TEST_CASE("a row after the end of its stream counts as repeated") {
  CheckedRows at;
  RowEntry last = at.row(0);
  last.flags = flag::end | flag::last;
  at.add(last);
  at.add(at.row(1));
  CHECK(at.seen().repeated == 1);
}

TEST_CASE("every row has a different answer, and rows of another run have none") {
  CheckedRows at;
  std::string answer;
  at.row_check.answer(at.row(2), answer);
  CHECK(answer == R"("1-5-3200")");
  at.row_check.answer({.stream = StreamId{78}}, answer);
  CHECK(answer == "null");
}

TEST_CASE("a transcript has a word for its row, and is final") {
  CheckedRows at;
  at.run.transcribed = true;
  std::string answer;
  at.row_check.answer(at.row(2), answer);
  CHECK(answer == R"({"text":"r-1-5-3200-4800","final":true})");
}

TEST_CASE("where the protocol has no names, a string in the options is the name of the stream") {
  const StreamId other{78};
  const auto opened = [&](std::string_view options) {
    CheckedRows at;
    at.row_check.open(other, "s1", options);
    return at.seen().unended == 2;
  };
  CHECK(opened(R"({"model":"m","prompt":"run-2-5"})"));
  CHECK(opened(R"({"keyterm":["run-2-5"]})"));
  for (const char* none : {"", "{}", R"({"prompt":"ran-2-5"})", R"({"prompt":"run-2"})",
                           R"({"prompt":"run-2-5-6"})", R"({"prompt":"run-99-5"})"})
    CHECK_FALSE(opened(none));
}

TEST_CASE("the last rows of streams are counted, if they have frames") {
  CheckedRows at;
  RowEntry last = at.row(0);
  last.flags = flag::end | flag::last;
  at.add(last);
  CHECK(at.seen().closing == 1);
  CHECK(at.seen().framed == 1);
}

TEST_CASE(
    "in step, the time of each packet ends with its last row, also after rows of the next one") {
  CheckedRows at(Phase::step);
  const StreamId other{78};
  at.row_check.open(other, stream_name("run", {2, 5}));
  const Time due = at.schedule.due(0, 5);
  at.row_check.check(at.row(0), at.sent(0), due + 1ms);
  at.row_check.check(at.row(1), at.sent(1), due + 101ms);
  RowEntry row = at.row(0);
  row.stream = other;
  at.row_check.check(row, at.sent(0), due + 104ms);
  CHECK(at.seen().bursts == std::unordered_map<std::uint64_t, Duration>{{5, 104ms}, {6, 1ms}});
}

TEST_CASE("a stream that was opened anew continues at its place, and may repeat rows before that") {
  CheckedRows at;
  for (int i = 0; i < 4; ++i) at.add(at.row(i));
  constexpr StreamId anew{78};
  at.row_check.open(anew, stream_name("run", {1, 5}));
  const auto add = [&](std::uint64_t n) {
    RowEntry row = at.row(n);
    row.stream = anew;
    at.add(row);
  };
  SECTION("at an earlier place") {
    for (const int n : {2, 3, 4}) add(n);
    CHECK(at.seen().lost == 0);
    CHECK(at.seen().repeated == 0);
    add(3);
    CHECK(at.seen().repeated == 1);
  }
  SECTION("at a later place") {
    add(5);
    CHECK(at.seen().lost == packet);
  }
  CHECK(at.seen().damaged == 0);
}
