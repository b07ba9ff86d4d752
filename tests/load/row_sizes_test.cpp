// SPDX-License-Identifier: Apache-2.0
// Rows of a rule with several sizes.
#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "tests/load/checked_rows.h"

using namespace millrace;
using namespace millrace::load;

namespace {

// A rule with sizes that are drawn for each row.
ChunkRule sized(Spec spec, std::uint64_t seed = 1) {
  spec.size = 80;
  const SizeList sizes(std::vector<std::uint32_t>{40, 80, 160});
  return {.spec = spec, .sizes = {.by = SizeRule::By::random, .sizes = sizes, .seed = seed}};
}

// The rows of a stream of `frames` frames, without the chunker: bodies end to end, the last is cut.
std::vector<Row> sized_rows(const ChunkRule& rule, std::uint64_t frames) {
  std::vector<Row> rows;
  for (std::uint64_t begin = 0; begin < frames; begin = rows.back().end()) {
    const std::uint32_t size = drawn_size(rule.sizes, "any", rows.size());
    const std::uint32_t body = begin == 0 ? rule.first_body(size) : size;
    Row& row = rows.emplace_back();
    row.seq = rows.size() - 1;
    row.begin = begin;
    row.left = static_cast<std::uint32_t>(std::min<std::uint64_t>(rule.spec.left, begin));
    row.size = static_cast<std::uint32_t>(std::min<std::uint64_t>(body, frames - begin));
    row.right =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(rule.spec.right, frames - row.end()));
    row.flags = begin == 0 ? flag::start | flag::reset | flag::segment : 0;
  }
  rows.back().flags |= flag::last | flag::end;
  return rows;
}

}  // namespace

TEST_CASE("with sizes, rows of every size are correct in a batch of any width") {
  for (const Spec& spec : {Spec{}, Spec{.left = 20, .right = 30}, Spec{.first = 90, .right = 10}})
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const ChunkRule rule = sized(spec, seed);
      CheckedRows at(Phase::uniform, rule);
      const auto rows = sized_rows(rule, 1000 + seed);
      for (const Row& row : rows) {
        auto values = at.tensor_row(row);
        values.resize(2 * rule.columns().needed(row.left, row.size, row.right) + 2 * seed);
        at.row_check.check(CheckedRows::entry_of(row), values, start);
      }
      CHECK(at.seen().lost + at.seen().repeated + at.seen().damaged == 0);
      CHECK(at.seen().framed == rows.size());
      CHECK(at.seen().frames_ended == 1000 + seed);
    }
}

TEST_CASE("with sizes, a missing row is lost, and a size that is none of them is damage") {
  const ChunkRule rule = sized({.first = 90});
  const auto rows = sized_rows(rule, 1000);
  CheckedRows without(Phase::uniform, rule);
  for (const Row& row : rows)
    if (row.seq != 2) without.add(row);
  CHECK(without.seen().lost == rows[2].size);

  const auto damage = [&](std::uint32_t size, std::uint8_t flags) {
    CheckedRows at(Phase::uniform, rule);
    Row row;
    row.size = size;
    row.flags = flags;
    at.add(row);
    return at.seen().damaged;
  };
  CHECK(damage(80, 0) == 0);
  CHECK(damage(90, 0) == 1);
  CHECK(damage(90, flag::reset) == 0);  // 10 frames more for the first body of a run
  CHECK(damage(170, flag::reset) == 0);
  CHECK(damage(41, flag::reset) == 1);
  CHECK(damage(41, flag::last) == 0);  // cut at the end of its segment
  CHECK(damage(161, flag::last) == 1);
}
