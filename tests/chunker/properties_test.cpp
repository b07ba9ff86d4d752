// SPDX-License-Identifier: Apache-2.0
// Properties of every rule and every stream.
#include <catch2/catch.hpp>
#include <random>

#include "chunker/chunker.h"
#include "tests/chunker/events.h"
#include "tests/chunker/row_values.h"

namespace millrace {
namespace {

constexpr int rounds = 2000;

std::string described(const Case& one) {
  return boost::json::serialize(to_json(one.rule.spec)) + " " +
         boost::json::serialize(to_json(one.events));
}

std::vector<Event> split(const std::vector<Event>& events, std::mt19937_64& random) {
  std::vector<Event> pieces;
  for (const Event& event : events) {
    std::uint64_t rest = event.kind == Event::Kind::frames ? event.count : 0;
    while (rest > 0 && random() % 4 > 0) {
      const std::uint64_t n = random() % (rest + 1);
      pieces.push_back(frames(n));
      rest -= n;
    }
    pieces.push_back(event);
    if (event.kind == Event::Kind::frames) pieces.back().count = rest;
  }
  return pieces;
}

// The rows if frames are added only up to the next row; no event may give two rows.
std::vector<Row> rows_fed_to_the_next(const Case& one) {
  Chunker chunker(one.rule.spec);
  std::vector<Row> rows;
  for (Event event : one.events) {
    std::uint64_t rest = event.kind == Event::Kind::frames ? event.count : 0;
    while (rest > 0) {
      const std::uint64_t until = chunker.frames_until_next(), n = std::min(rest, until);
      REQUIRE(until > 0);
      chunker.add(frames(n));
      rest -= n;
      const auto row = chunker.next();
      REQUIRE(row.has_value() == (n == until));
      REQUIRE_FALSE(chunker.next());
      if (row) rows.push_back(*row);
    }
    if (event.kind == Event::Kind::frames) continue;
    chunker.add(event);
    while (const auto row = chunker.next()) rows.push_back(*row);
  }
  return rows;
}

TEST_CASE("splitting frames into several events changes no row", "[property]") {
  std::mt19937_64 random(1);
  for (int i = 0; i < rounds; ++i) {
    const Case one = random_case(random);
    INFO(described(one));
    REQUIRE(rows_of(one.rule.spec, split(one.events, random)) ==
            rows_of(one.rule.spec, one.events));
  }
}

TEST_CASE("frames fed up to the next row give exactly that row", "[property]") {
  std::mt19937_64 random(2);
  for (int i = 0; i < rounds; ++i) {
    const Case one = random_case(random);
    INFO(described(one));
    REQUIRE(rows_fed_to_the_next(one) == rows_of(one.rule.spec, one.events));
  }
}

TEST_CASE("no row has a frame before the value of keep_from()", "[property]") {
  std::mt19937_64 random(3);
  for (int i = 0; i < rounds; ++i) {
    const Case one = random_case(random);
    INFO(described(one));
    Chunker chunker(one.rule.spec);
    std::uint64_t kept = 0;
    for (const Event& event : one.events) {
      chunker.add(event);
      while (const auto row = chunker.next()) {
        REQUIRE(row->window_begin() >= kept);
        REQUIRE(chunker.keep_from() >= kept);
        kept = chunker.keep_from();
      }
      REQUIRE(kept <= chunker.position());
      kept = chunker.keep_from();
    }
  }
}

// Checks the numbers and markers of all rows of a stream.
void require_markers(const Event& first, const std::vector<Row>& rows) {
  const bool anew = first.opened_anew();
  bool fresh = true, opens = true;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    REQUIRE(row.seq == first.rows + i);
    REQUIRE(row.is(flag::start) == (i == 0 && !anew));
    REQUIRE_FALSE(row.reason == (anew ? ResetReason::start : ResetReason::failover));
    REQUIRE(row.is(flag::end) == (i + 1 == rows.size()));
    REQUIRE(row.is(flag::segment) == opens);
    REQUIRE(row.is(flag::reset) == (row.reason != ResetReason::none));
    REQUIRE(row.is(flag::gap) == (row.gap > 0));
    if (row.is(flag::gap)) fresh = true;
    if (fresh) REQUIRE(row.is(flag::reset));
    if (row.has_frames()) fresh = false;
    opens = row.is(flag::last);
  }
}

TEST_CASE("markers delimit segments and streams, and a gap causes a RESET", "[property]") {
  std::mt19937_64 random(4);
  for (int i = 0; i < rounds; ++i) {
    Case one = random_case(random);
    if (one.events.empty() || (one.events.back().kind != Event::Kind::end &&
                               one.events.back().kind != Event::Kind::abort))
      one.events.push_back(end());
    INFO(described(one));
    require_markers(one.events.front(), rows_of(one.rule.spec, one.events));
  }
}

TEST_CASE("if bodies are end to end, each frame is in exactly one", "[property]") {
  std::mt19937_64 random(5);
  for (int i = 0; i < rounds; ++i) {
    const std::uint64_t total = random() % 100;
    const Spec spec{.size = 1 + static_cast<std::uint32_t>(random() % 9),
                    .first = static_cast<std::uint32_t>(random() % 9)};
    std::uint64_t covered = 0;
    for (const Row& row : rows_of(spec, {frames(total), end()})) {
      REQUIRE(row.begin == covered);
      covered = row.end();
    }
    REQUIRE(covered == total);
  }
}

}  // namespace
}  // namespace millrace
