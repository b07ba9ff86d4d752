// SPDX-License-Identifier: Apache-2.0
#include "gpu/host/batch_writer.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "gpu/host/slab_ring.h"
#include "tests/gpu/host/values.h"

using namespace millrace;
using namespace millrace::test;

namespace {

using Numbers = std::vector<std::int32_t>;

// A slab with the remains of an earlier batch.
class WrittenSlab {
 public:
  WrittenSlab() { std::ranges::fill(bytes(), std::byte{0x77}); }

  MutableBytes bytes() const { return ring_.slab(0); }

  template <class T>
  std::vector<T> array(std::size_t at, std::size_t entries) const {
    return values_of<T>(bytes().subspan(at, entries * sizeof(T)));
  }

 private:
  SlabRing ring_{1, 8192};
};

}  // namespace

TEST_CASE("a batch has rows, padding rows, and then marker rows, which only the arrays contain") {
  WrittenSlab slab;
  BatchWriter writer(RowFormat{.context = 1}, 64);
  const auto a = bytes_of<std::int16_t>({1, 2, 3}), b = bytes_of<std::int16_t>({4, 5});
  writer.begin(slab.bytes(), 4, 2, 4);
  writer.add({.slot = 7, .left = 1, .size = 2, .right = 0, .flags = 5}, {Bytes(a)});
  writer.add_mark({.slot = 9, .flags = 16});
  writer.add({.slot = 3, .left = 0, .size = 1, .right = 1, .flags = 3}, {Bytes(b)});
  writer.add_mark({.slot = 7, .flags = 48});
  const SlabShape shape = writer.finish();

  CHECK(shape.rows == 4);
  CHECK(shape.marks == 2);
  CHECK(shape.width == 4);
  const SlabLayout layout = layout_of(shape);
  CHECK(slab.array<std::int16_t>(0, 16) ==
        std::vector<std::int16_t>{1, 2, 3, 0, 0, 4, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  CHECK(slab.array<std::int32_t>(layout.slots, 6) == Numbers{7, 3, 64, 64, 9, 7});
  CHECK(slab.array<std::int32_t>(layout.left, 6) == Numbers{1, 0, 0, 0, 0, 0});
  CHECK(slab.array<std::int32_t>(layout.size, 6) == Numbers{2, 1, 0, 0, 0, 0});
  CHECK(slab.array<std::int32_t>(layout.right, 6) == Numbers{0, 1, 0, 0, 0, 0});
  CHECK(slab.array<std::uint8_t>(layout.flags, 6) == std::vector<std::uint8_t>{5, 3, 0, 0, 16, 48});
}

TEST_CASE("a batch with only marker rows has arrays and no tensor") {
  WrittenSlab slab;
  BatchWriter writer(RowFormat{}, 64);
  writer.begin(slab.bytes(), 0, 1, 4);
  writer.add_mark({.slot = 2, .flags = 112});
  const SlabLayout layout = layout_of(writer.finish());
  CHECK(layout.slots == 0);
  CHECK(slab.array<std::int32_t>(layout.slots, 1) == Numbers{2});
  CHECK(slab.array<std::uint8_t>(layout.flags, 1) == std::vector<std::uint8_t>{112});
}

TEST_CASE("the tensor has the elements of the dtype") {
  WrittenSlab slab;
  BatchWriter writer(RowFormat{.dtype = Element::f32, .values = 2}, 1);
  const auto frames = bytes_of<std::int16_t>({16384, -32768});
  writer.begin(slab.bytes(), 2, 0, 2);
  writer.add({.size = 1}, {Bytes(frames)});
  const SlabShape shape = writer.finish();
  CHECK(shape.element == Element::f32);
  CHECK(shape.values == 2);
  CHECK(slab.array<float>(0, 8) == std::vector<float>{0.5f, -1, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("a writer can write one batch after another") {
  WrittenSlab slab;
  BatchWriter writer(RowFormat{}, 64);
  const auto frames = bytes_of<std::int16_t>({1, 2});
  for (int batch = 0; batch < 2; ++batch) {
    writer.begin(slab.bytes(), 2, 1, 2);
    writer.add({.slot = 7, .size = 2}, {Bytes(frames)});
    writer.add_mark({.slot = 9});
    const SlabLayout layout = layout_of(writer.finish());
    CHECK(slab.array<std::int16_t>(0, 4) == std::vector<std::int16_t>{1, 2, 0, 0});
    CHECK(slab.array<std::int32_t>(layout.slots, 3) == Numbers{7, 64, 9});
  }
}

TEST_CASE("nothing is written after the end of the batch's layout") {
  WrittenSlab slab;
  BatchWriter writer(RowFormat{}, 64);
  writer.begin(slab.bytes(), 3, 1, 5);
  const auto frames = bytes_of<std::int16_t>({1});
  writer.add({.size = 1}, {Bytes(frames)});
  writer.add_mark({});
  const SlabLayout layout = layout_of(writer.finish());
  for (std::byte byte : slab.bytes().subspan(layout.bytes)) REQUIRE(byte == std::byte{0x77});
}

TEST_CASE("rows that are written by number, in any order, make the batch of rows in order") {
  const auto a = bytes_of<std::int16_t>({1, 2, 3}), b = bytes_of<std::int16_t>({4, 5});
  const RowControl first{.slot = 7, .left = 1, .size = 2, .flags = 5};
  const RowControl second{.slot = 3, .size = 1, .right = 1, .flags = 3, .reset = true};
  const RowControl mark{.slot = 9, .flags = 16}, last{.slot = 7, .flags = 48};
  WrittenSlab in_order, by_number;
  BatchWriter writer(RowFormat{.context = 1}, 64);
  writer.begin(in_order.bytes(), 4, 2, 4);
  writer.add(first, {Bytes(a)});
  writer.add(second, {Bytes(b)});
  writer.add_mark(mark);
  writer.add_mark(last);
  const std::size_t bytes = layout_of(writer.finish()).bytes;
  writer.begin(by_number.bytes(), 4, 2, 4);
  writer.put_mark(1, last);
  writer.put(1, second, {Bytes(b)});
  writer.put_mark(0, mark);
  writer.put(0, first, {Bytes(a)});
  CHECK(layout_of(writer.finish(2)).bytes == bytes);
  CHECK(std::ranges::equal(in_order.bytes(), by_number.bytes()));
}

TEST_CASE("companions lie behind the control arrays, and are left to the caller") {
  WrittenSlab slab;
  BatchWriter writer(RowFormat{}, 64);
  const auto frames = bytes_of<std::int16_t>({1});
  writer.begin(slab.bytes(), 2, 0, 1, 300);
  CHECK(writer.companions().size() == 300);
  writer.companions()[299] = std::byte{1};
  writer.add({.size = 1}, {Bytes(frames)});
  const SlabShape shape = writer.finish();
  const SlabLayout layout = layout_of(shape);
  CHECK(shape.companions == 300);
  CHECK(layout.companions % slab_alignment == 0);
  CHECK(layout.companions >= layout.reset + 2);
  CHECK(layout.bytes >= layout.companions + 300);
  CHECK(writer.companions().data() == slab.bytes().data() + layout.companions);
  CHECK(slab.bytes()[layout.companions + 298] == std::byte{0x77});
  CHECK(slab.bytes()[layout.companions + 299] == std::byte{1});
}
