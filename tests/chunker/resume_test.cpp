// SPDX-License-Identifier: Apache-2.0
// A stream that is lost after any of its rows, and opened anew there, continues its rows.
#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "tests/chunker/events.h"
#include "tests/chunker/resumed_events.h"

namespace millrace {
namespace {

using Kind = Event::Kind;

// The end of a segment.
struct Border {
  std::uint64_t position = 0;
  std::uint8_t flags = 0;
  std::optional<std::uint64_t> mark;
  bool operator==(const Border&) const = default;
};

std::vector<Border> borders(const std::vector<Resumable>& rows, std::size_t from) {
  std::vector<Border> all;
  for (std::size_t i = from; i < rows.size(); ++i) {
    const Row& row = rows[i].row;
    constexpr std::uint8_t ends = flag::last | flag::end | flag::abort;
    if (row.is(flag::last))
      all.push_back({row.end() + row.right, static_cast<std::uint8_t>(row.flags & ends), row.mark});
  }
  return all;
}

// The parts of the stream that bodies cover from `position` on, joined where they lie end to end.
using Parts = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
Parts covered(const std::vector<Resumable>& rows, std::size_t from, std::uint64_t position) {
  Parts parts{{position, position}};
  for (std::size_t i = from; i < rows.size(); ++i) {
    const Row& row = rows[i].row;
    if (!row.has_frames()) continue;
    if (parts.back().second == row.begin)
      parts.back().second = row.end();
    else
      parts.emplace_back(row.begin, row.end());
  }
  return parts;
}

// Calls check(rows, index of a row, rows of the stream that is opened anew after it) for each row
// of random streams whose bodies lie end to end.
template <class Check>
void for_each_resume(std::uint64_t seed, const Check& check) {
  std::mt19937_64 random(seed);
  for (int round = 0; round < 3000; ++round) {
    const Case one = random_case(random);
    const Spec& spec = one.rule.spec;
    if (spec.step != 0 && spec.step != spec.size) continue;
    const auto rows = cut(spec, one.events);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].row.is(flag::end)) continue;
      const auto rest = events_after(rows[i], one.events);
      INFO(boost::json::serialize(to_json(spec))
           << " " << boost::json::serialize(to_json(one.events)) << " row " << rows[i].row.seq
           << ": " << boost::json::serialize(to_json(rest)));
      check(one, rows, i, cut(spec, rest));
    }
  }
}

// A gap ends no segment of its own if the stream opened anew has no frame before it.
bool ends_no_segment(const Case& one, const std::vector<Resumable>& rows, std::size_t i) {
  if (rows[i].row.is(flag::last) || i + 1 == rows.size()) return false;
  const Resumable& next = rows[i + 1];
  return one.events[next.event].kind == Kind::gap && next.row.end() == rows[i].position;
}

TEST_CASE("a stream that is opened anew after any row ends each segment where it would have ended",
          "[property]") {
  for_each_resume(1, [](const Case& one, const auto& rows, std::size_t i, const auto& anew) {
    const std::size_t missing = ends_no_segment(one, rows, i) ? 1 : 0;
    REQUIRE(borders(anew, 0) == borders(rows, i + 1 + missing));
  });
}

TEST_CASE("the numbers of its rows continue and its first row has a reset", "[property]") {
  for_each_resume(2, [](const Case&, const auto& rows, std::size_t i, const auto& anew) {
    for (std::size_t k = 0; k < anew.size(); ++k) {
      REQUIRE(anew[k].row.seq == rows[i].row.seq + 1 + k);
      REQUIRE_FALSE(anew[k].row.is(flag::start));
      REQUIRE(anew[k].row.window_begin() >= rows[i].position);
    }
    if (!anew.empty()) REQUIRE(anew.front().row.is(flag::reset));
  });
}

TEST_CASE("its bodies continue those of the rows before without a hole", "[property]") {
  std::uint64_t streams = 0;
  for_each_resume(3, [&](const Case& one, const auto& rows, std::size_t i, const auto& anew) {
    const Spec& spec = one.rule.spec;
    const Row& row = rows[i].row;
    if (row.has_frames() && !row.is(flag::last)) REQUIRE(rows[i].position == row.end());
    // Other frames of a cut tail may be in no body: it is another body of its run or segment.
    const bool other_tail = spec.min > 0 || (spec.tail == Spec::Tail::drop && spec.first > 0);
    if (other_tail || anew.empty()) return;
    if (!anew.back().row.is(flag::end) || anew.back().row.is(flag::abort)) return;
    REQUIRE(covered(anew, 0, rows[i].position) == covered(rows, i + 1, rows[i].position));
    ++streams;
  });
  CHECK(streams > 1000);
}

TEST_CASE("a stream that is opened anew needs the frames after the last body again") {
  Chunker chunker({.size = 4, .left = 3, .right = 2});
  chunker.add(frames(7));
  CHECK(chunker.next()->end() == 4);
  CHECK(chunker.resume_position() == 4);
  chunker.add(flush());
  CHECK(chunker.next()->is(flag::last));
  CHECK(chunker.resume_position() == 7);
}

TEST_CASE("a gap that ends a segment is before the position of an open anew") {
  Chunker chunker({.size = 4});
  chunker.add(frames(5));
  CHECK(chunker.next());
  CHECK_FALSE(chunker.next());
  chunker.add(gap(10));
  CHECK(chunker.next()->is(flag::last));
  CHECK(chunker.resume_position() == 15);
}

}  // namespace
}  // namespace millrace
