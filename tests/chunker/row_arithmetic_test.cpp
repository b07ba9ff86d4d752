// SPDX-License-Identifier: Apache-2.0
// The arithmetic beside the chunker: for streams without inner events they must agree.
#include "chunker/row_arithmetic.h"

#include <catch2/catch.hpp>
#include <random>

#include "chunker/chunker.h"
#include "tests/chunker/events.h"

namespace millrace {
namespace {

std::vector<Row> chunked(const Spec& spec, std::uint64_t n) {
  std::vector<Event> events{open()};
  if (n > 0) events.push_back(frames(n));
  events.push_back(end());
  return rows_of(spec, events);
}

std::vector<Row> computed(const Spec& spec, std::uint64_t n) {
  std::vector<Row> rows;
  for (std::uint64_t j = 0; j < rows_of(spec, n); ++j) rows.push_back(row_at(spec, n, j));
  return rows;
}

RowCounts counted(const std::vector<Row>& rows) {
  RowCounts counts;
  for (const Row& row : rows) {
    if (row.has_frames()) ++counts.framed;
    counts.frames += row.size;
  }
  counts.marker = !rows.back().has_frames();
  return counts;
}

void compare(const Spec& spec, std::uint64_t n) {
  INFO(boost::json::serialize(to_json(spec)) << " with " << n << " frames");
  const std::vector<Row> rows = chunked(spec, n);
  REQUIRE(computed(spec, n) == rows);
  REQUIRE(count_rows(spec, n) == counted(rows));
}

constexpr auto all_tails = values_of<Spec::Tail>();

TEST_CASE("the arithmetic gives the chunker's rows for every small rule and length", "[property]") {
  std::mt19937_64 random(1);
  for (std::uint32_t size = 1; size <= 4; ++size)
    for (std::uint32_t step = 0; step <= 5; ++step)
      for (std::uint32_t first = 0; first <= 6; ++first)
        for (const auto tail : all_tails)
          for (std::uint32_t min = 0; min <= 5; ++min) {
            Spec spec{.size = size, .step = step, .first = first, .tail = tail, .min = min};
            if (!spec.check()) continue;
            for (std::uint64_t n = 0; n <= 16; ++n) {
              spec.left = static_cast<std::uint32_t>(random() % 4);
              spec.right = static_cast<std::uint32_t>(random() % 7);
              compare(spec, n);
            }
          }
}

TEST_CASE("the arithmetic gives the chunker's rows for random rules and lengths", "[property]") {
  std::mt19937_64 random(2);
  const auto number = [&](std::uint64_t most) {
    return static_cast<std::uint32_t>(random() % (most + 1));
  };
  for (int i = 0; i < 20000; ++i) {
    const std::uint32_t most = i % 2 == 0 ? 12 : 60;
    const Spec spec{.size = 1 + number(most),
                    .step = number(most),
                    .first = number(most),
                    .left = number(most),
                    .right = number(most),
                    .tail = all_tails[random() % all_tails.size()],
                    .min = number(most)};
    if (spec.check()) compare(spec, number(6 * most));
  }
}

TEST_CASE("the arithmetic agrees with the vectors without inner events") {
  const boost::json::value vectors = conformance("chunks.json");
  std::size_t compared = 0;
  for (const auto& one : vectors.at("cases").as_array()) {
    std::uint64_t n = 0;
    bool plain = true;
    for (const Event& event : events_from(one.at("events"))) {
      plain = plain && (event.kind == Event::Kind::frames || event.kind == Event::Kind::end);
      n += event.count;
    }
    if (!plain) continue;
    compare(spec_from(one.at("spec")), n);
    CHECK(columns(computed(spec_from(one.at("spec")), n)) ==
          boost::json::value_to<Columns>(one.at("rows")));
    ++compared;
  }
  CHECK(compared == 24);
}

TEST_CASE("rows of a stream of years are computed at once") {
  const Spec spec{.size = 1600};
  const std::uint64_t n = max_position;
  const std::uint64_t rows = rows_of(spec, n);
  CHECK(rows == n / 1600 + 1);
  CHECK(row_at(spec, n, rows - 1).end() == n);
  CHECK(row_at(spec, n, rows - 2).begin == (rows - 2) * 1600);
}

}  // namespace
}  // namespace millrace
