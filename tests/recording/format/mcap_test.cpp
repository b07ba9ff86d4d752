// SPDX-License-Identifier: Apache-2.0
#include "recording/format/mcap.h"

#include <catch2/catch.hpp>
#include <initializer_list>
#include <span>

using namespace millrace;
using namespace millrace::recording::mcap;

namespace {

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

const std::array<std::byte, 16> id{std::byte{1}, std::byte{2}, std::byte{3}};

std::vector<std::byte> marker_with(std::size_t padding) {
  std::vector<std::byte> bytes;
  append(bytes, {.id = id, .number = 7, .length = 1'000'000}, padding);
  return bytes;
}

}  // namespace

TEST_CASE("numbers and texts are little-endian, with the length first") {
  std::vector<std::byte> bytes;
  Builder builder(bytes);
  builder.u8(1);
  builder.u16(0x203);
  builder.u32(0x4050607);
  builder.u64(0x8090a0b0c0d0e0f);
  builder.text("ab");
  CHECK(bytes ==
        bytes_of({1, 3, 2, 7, 6, 5, 4, 15, 14, 13, 12, 11, 10, 9, 8, 2, 0, 0, 0, 'a', 'b'}));
  Cursor cursor(bytes);
  CHECK(cursor.u8() == 1);
  CHECK(cursor.u16() == 0x203);
  CHECK(cursor.u32() == 0x4050607);
  CHECK(cursor.u64() == 0x8090a0b0c0d0e0f);
  CHECK(cursor.text() == "ab");
  CHECK(cursor.ok());
  CHECK(cursor.left() == 0);
}

TEST_CASE("a map begins with its length in bytes") {
  std::vector<std::byte> bytes;
  Builder(bytes).text_map({{"b", ""}, {"a", "x"}});
  CHECK(bytes ==
        bytes_of({19, 0, 0, 0, 1, 0, 0, 0, 'a', 1, 0, 0, 0, 'x', 1, 0, 0, 0, 'b', 0, 0, 0, 0}));
  Cursor cursor(bytes);
  CHECK(cursor.text_map() == TextMap{{"a", "x"}, {"b", ""}});
  CHECK(cursor.left() == 0);
}

TEST_CASE("the keys of a map may come in any order") {
  const auto bytes =
      bytes_of({19, 0, 0, 0, 1, 0, 0, 0, 'b', 0, 0, 0, 0, 1, 0, 0, 0, 'a', 1, 0, 0, 0, 'x'});
  CHECK(Cursor(bytes).text_map() == TextMap{{"a", "x"}, {"b", ""}});
}

TEST_CASE("a map that does not fill its length, or has a key twice, is refused") {
  for (auto& bytes : {bytes_of({8, 0, 0, 0, 1, 0, 0, 0, 'a', 0, 0, 0}),
                      bytes_of({9, 0, 0, 0, 1, 0, 0, 0, 'a', 1, 0, 0, 0}),
                      bytes_of({4, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}),
                      bytes_of({16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}),
                      bytes_of({27, 0,   0, 0, 1, 0, 0, 0, 'a', 0, 0,   0, 0, 1, 0, 0,
                                0,  'b', 0, 0, 0, 0, 1, 0, 0,   0, 'a', 0, 0, 0, 0})}) {
    Cursor cursor(bytes);
    CHECK(cursor.text_map().empty());
    CHECK_FALSE(cursor.ok());
  }
}

TEST_CASE("after a read beyond the end, everything else reads as nothing") {
  const auto bytes = bytes_of({1, 2, 3, 4, 5});
  Cursor cursor(bytes);
  CHECK(cursor.u32() == 0x4030201);
  CHECK(cursor.u16() == 0);
  CHECK_FALSE(cursor.ok());
  CHECK(cursor.u8() == 0);
  CHECK(cursor.text().empty());
  CHECK_FALSE(cursor.record().has_value());
  CHECK(Cursor(bytes).bytes(~std::uint64_t{0}).empty());
}

TEST_CASE("a record is read only if all of it is there") {
  std::vector<std::byte> bytes;
  Builder builder(bytes);
  const std::size_t begun = builder.begin(Opcode::message_index);
  builder.u16(5);
  builder.end(begun);
  CHECK(bytes == bytes_of({7, 2, 0, 0, 0, 0, 0, 0, 0, 5, 0}));
  Cursor cursor(bytes);
  const auto record = cursor.record();
  REQUIRE(record.has_value());
  CHECK(record->opcode == Opcode::message_index);
  CHECK(record->content.size() == 2);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    Cursor torn(Bytes(bytes).first(size));
    CHECK_FALSE(torn.record().has_value());
    CHECK(torn.ok());
    CHECK(torn.offset() == 0);
  }
}

TEST_CASE("a marker is read with each padding") {
  for (std::size_t padding = 0; padding <= most_padding; ++padding) {
    const auto bytes = marker_with(padding);
    CHECK(bytes.size() == record_head + marker_content + padding);
    Cursor cursor(bytes);
    const auto marker = marker_from(cursor.record()->content, id);
    REQUIRE(marker.has_value());
    CHECK(marker->number == 7);
    CHECK(marker->length == 1'000'000);
  }
}

TEST_CASE("a marker of another file, of another length, or with a flipped bit, is refused") {
  const auto bytes = marker_with(0);
  const Bytes content = Bytes(bytes).subspan(record_head);
  auto other = id;
  other[15] = std::byte{1};
  CHECK_FALSE(marker_from(content, other).has_value());
  CHECK_FALSE(marker_from(content.first(35), id).has_value());
  CHECK_FALSE(marker_from(Bytes(marker_with(8)).subspan(record_head), id).has_value());
  for (std::size_t bit = 0; bit < 8 * content.size(); ++bit) {
    std::vector<std::byte> flipped(content.begin(), content.end());
    flipped[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    CHECK_FALSE(marker_from(flipped, id).has_value());
  }
}
