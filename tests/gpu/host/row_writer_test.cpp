// SPDX-License-Identifier: Apache-2.0
#include "gpu/host/row_writer.h"

#include <catch2/catch.hpp>
#include <random>

#include "tests/gpu/host/row_reference.h"

using namespace millrace;
using namespace millrace::test;

namespace {

using Samples = std::vector<std::int16_t>;

// Writes a row of `width` columns over poison, with its window in two parts.
Samples written(const RowFormat& format, std::uint32_t width, const Samples& first,
                const Samples& second, std::uint32_t left) {
  std::vector<std::byte> row(width * format.values * 2, std::byte{0x77});
  const auto part0 = bytes_of(first), part1 = bytes_of(second);
  RowWriter(format).write(row, {Bytes(part0), Bytes(part1)}, left);
  return values_of<std::int16_t>(row);
}

}  // namespace

TEST_CASE("the body begins after the columns of its context, with zeros around the window") {
  const RowFormat format{.context = 3};
  CHECK(written(format, 8, {1, 2, 3}, {}, 1) == Samples{0, 0, 1, 2, 3, 0, 0, 0});
}

TEST_CASE("without columns for context the window begins at column 0") {
  CHECK(written({}, 5, {1, 2, 3}, {}, 2) == Samples{1, 2, 3, 0, 0});
}

TEST_CASE("padding by repetition uses the window's first and last frame") {
  const RowFormat format{.values = 2, .context = 2, .repeat = true};
  CHECK(written(format, 5, {1, 2, 3, 4}, {}, 1) == Samples{1, 2, 1, 2, 3, 4, 3, 4, 3, 4});
}

TEST_CASE("a window in two parts is written as one") {
  const RowFormat format{.context = 2, .repeat = true};
  CHECK(written(format, 6, {1, 2}, {3}, 1) == Samples{1, 1, 2, 3, 3, 3});
  CHECK(written(format, 6, {1, 2, 3}, {}, 1) == Samples{1, 1, 2, 3, 3, 3});
  CHECK(written(format, 6, {}, {1, 2, 3}, 1) == Samples{1, 1, 2, 3, 3, 3});
}

TEST_CASE("a window as wide as the row fills it") {
  CHECK(written({.context = 1}, 3, {1, 2}, {3}, 1) == Samples{1, 2, 3});
}

TEST_CASE("rows of any size and address equal those of a simple reference") {
  std::mt19937 random(3);
  const auto pick = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  for (int round = 0; round < 2000; ++round) {
    const auto [frames, dtype] = conversions[round % 7];
    RowFormat format{.frames = frames, .dtype = dtype, .values = 1 + pick(5)};
    const std::uint32_t left = pick(20);
    const std::uint32_t window = left + 1 + pick(90);
    if (pick(2) == 0) format.context = left + pick(4);
    format.repeat = pick(2) == 0;
    const std::uint32_t width = format.lead(left) + window + pick(9);

    const std::size_t offset = pick(4);
    std::vector<std::byte> source = random_values(random, frames, window * format.values);
    source.insert(source.begin(), offset, std::byte{0x77});
    const Bytes all = Bytes(source).subspan(offset);
    const std::size_t cut = pick(window + 1) * format.values * size_of(frames);

    std::vector<std::byte> row(width * format.values * size_of(dtype), std::byte{0x77});
    RowWriter(format).write(row, {all.first(cut), all.subspan(cut)}, left);
    if (row != row_by_definition(format, width, all, left)) FAIL("round " << round);
  }
}
