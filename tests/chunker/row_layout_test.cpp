// SPDX-License-Identifier: Apache-2.0
#include "chunker/row_layout.h"

#include <catch2/catch.hpp>

#include "tests/chunker/row_values.h"

namespace millrace {
namespace {

// A body at position 11 with one frame of left context, of two that the rule asks for.
Row row() {
  Row row;
  row.begin = 11;
  row.left = 1;
  row.size = 3;
  row.right = 1;
  return row;
}

constexpr Spec spec{.size = 4, .left = 2, .right = 2};

std::string values(Align align, Pad pad, std::uint32_t width) {
  return boost::json::serialize(row_values(row(), {spec, align, pad}, width));
}

TEST_CASE("body alignment keeps the body at the column of the left context") {
  CHECK(row_layout(row(), {spec, Align::body, Pad::zero}, 8) == RowLayout{1, 5, 2});
  CHECK(values(Align::body, Pad::zero, 8) == "[0,11,12,13,14,15,0,0]");
}

TEST_CASE("packed alignment begins with the window") {
  CHECK(row_layout(row(), {spec, Align::packed, Pad::zero}, 8) == RowLayout{0, 5, 3});
  CHECK(values(Align::packed, Pad::zero, 8) == "[11,12,13,14,15,0,0,0]");
}

TEST_CASE("repeat pads with the window's first and last frame") {
  CHECK(values(Align::body, Pad::repeat, 8) == "[11,11,12,13,14,15,15,15]");
}

TEST_CASE("a row may be wider than the rule's width, or as narrow as its window") {
  CHECK(row_layout(row(), {spec, Align::body, Pad::zero}, 10) == RowLayout{1, 5, 4});
  CHECK(row_layout(row(), {spec, Align::body, Pad::zero}, 6) == RowLayout{1, 5, 0});
}

TEST_CASE("the width is that of the widest window, including the sizes that events set") {
  CHECK(width_for(spec, 0) == 8);
  CHECK(width_for(spec, 9) == 13);
  CHECK(width_for({.size = 4, .first = 6}, 5) == 6);
}

}  // namespace
}  // namespace millrace
