// SPDX-License-Identifier: Apache-2.0
#include "transport/websocket/frame_head.h"

#include <catch2/catch.hpp>
#include <string>

#include "base/bytes.h"

using namespace millrace;

TEST_CASE("the head of a frame is read when it is complete") {
  using namespace std::string_literals;
  const auto [head, payload] = GENERATE(table<std::string, std::uint64_t>({
      {"\x82\x85KEY!"s, 5},
      {"\x82\xfe\x12\x34KEY!"s, 0x1234},
      {"\x82\xff\0\0\0\1\2\3\4\5KEY!"s, 0x102030405},
  }));
  for (std::size_t size = 0; size < head.size(); ++size)
    CHECK_FALSE(FrameHead::read(bytes_in(head).first(size)));
  const auto read = FrameHead::read(bytes_in(head + "more"));
  REQUIRE(read);
  CHECK(read->size == head.size());
  CHECK(read->payload == payload);
  CHECK(read->key == std::array{std::byte{'K'}, std::byte{'E'}, std::byte{'Y'}, std::byte{'!'}});
  CHECK(read->opcode() == Opcode::binary);
  CHECK(read->is_final());
  CHECK(read->has_good_length());
}

TEST_CASE("a valid length has its shortest form and at most 63 bits") {
  using namespace std::string_literals;
  for (const auto& [head, good] :
       {std::pair("\x82\xfe\0\x7eKEY!"s, true), std::pair("\x82\xfe\0\x7dKEY!"s, false),
        std::pair("\x82\xff\0\0\0\0\0\1\0\0KEY!"s, true),
        std::pair("\x82\xff\0\0\0\0\0\0\xff\xffKEY!"s, false),
        std::pair("\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff"s, true),
        std::pair("\x82\x7f\x80\0\0\0\0\0\0\0"s, false)})
    CHECK(FrameHead::read(bytes_in(head))->has_good_length() == good);
}

TEST_CASE("a written frame head is read with the same values") {
  for (const std::uint64_t payload : {0, 125, 126, 65535, 65536, 1 << 30}) {
    std::string head, masked;
    FrameHead::append(head, 0x81, payload);
    FrameHead::append(masked, 0x82, payload, std::array<std::byte, 4>{std::byte{'K'}});
    CHECK(FrameHead::read(bytes_in(masked))->opcode() == Opcode::binary);
    CHECK(FrameHead::read(bytes_in(masked))->key[0] == std::byte{'K'});
    const auto read = FrameHead::read(bytes_in(head));
    REQUIRE(read);
    CHECK(read->first == 0x81);
    CHECK(read->size == head.size());
    CHECK(read->payload == payload);
    CHECK_FALSE(read->masked);
  }
}

TEST_CASE("a mask is applied to all bytes in order") {
  const std::array key{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{0xff}};
  for (std::size_t size = 0; size < 40; ++size) {
    std::string masked(size, 'x'), expected;
    for (std::size_t i = 0; i < size; ++i)
      expected += static_cast<char>('x' ^ std::to_integer<int>(key[i % 4]));
    mask(std::as_writable_bytes(std::span(masked)), key);
    CHECK(masked == expected);
  }
}
