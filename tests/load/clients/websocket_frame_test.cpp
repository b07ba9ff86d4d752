// SPDX-License-Identifier: Apache-2.0
#include "load/clients/websocket_frame.h"

#include <catch2/catch.hpp>
#include <set>
#include <string_view>
#include <vector>

using namespace millrace;
using namespace millrace::load;

namespace {

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> all;
  for (int value : values) all.push_back(static_cast<std::byte>(value));
  return all;
}

// RFC 6455, 5.3, byte by byte.
std::vector<std::byte> unmasked(Bytes frame, std::size_t header) {
  std::vector<std::byte> payload;
  for (std::size_t i = header; i < frame.size(); ++i)
    payload.push_back(frame[i] ^ frame[header - 4 + (i - header) % 4]);
  return payload;
}

}  // namespace

TEST_CASE("a client's frame is masked, and its length is in the shortest form") {
  FrameWriter writer;
  struct Case {
    std::size_t length, header;
  };
  for (const auto& [length, header] : {Case{0, 6}, Case{7, 6}, Case{125, 6}, Case{126, 8},
                                       Case{3200, 8}, Case{65535, 8}, Case{65536, 14}}) {
    std::vector<std::byte> payload(length), frame(length + longest_header);
    for (std::size_t i = 0; i < length; ++i) payload[i] = static_cast<std::byte>(i * 7);
    const std::size_t size = writer.write(frame, Opcode::binary, payload);
    REQUIRE(size == length + header);
    frame.resize(size);
    CHECK(frame[0] == std::byte{0x82});
    CHECK((frame[1] & std::byte{0x80}) == std::byte{0x80});
    CHECK(unmasked(frame, header) == payload);
  }
}

TEST_CASE("keys are not used again and again") {
  FrameWriter writer;
  std::set<std::vector<std::byte>> keys;
  std::vector<std::byte> frame(32);
  for (int i = 0; i < 100; ++i) {
    writer.write(frame, Opcode::ping, {});
    keys.insert({frame.begin() + 2, frame.begin() + 6});
  }
  CHECK(keys.size() == 100);
}

TEST_CASE("a server's frame is read when it is whole") {
  const auto message = bytes({0x81, 0x05, 'H', 'e', 'l', 'l', 'o', 0x88});
  for (std::size_t size = 0; size < 7; ++size)
    CHECK_FALSE(read_frame(Bytes(message).first(size), 1 << 20));
  const auto frame = read_frame(message, 1 << 20);
  REQUIRE(frame);
  CHECK(frame->opcode == Opcode::text);
  CHECK(frame->final);
  CHECK(frame->size == 7);
  CHECK(frame->payload.size() == 5);
  CHECK(frame->payload.data() == message.data() + 2);
}

TEST_CASE("the longer forms of a length are read") {
  auto medium = bytes({0x82, 126, 0x01, 0x00});
  medium.resize(4 + 256);
  CHECK(read_frame(medium, 1 << 20)->payload.size() == 256);
  auto large = bytes({0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0});
  large.resize(10 + 65536);
  CHECK(read_frame(large, 1 << 20)->payload.size() == 65536);
  CHECK_FALSE(read_frame(Bytes(large).first(100), 1 << 20));
}

TEST_CASE("what no server may send is no frame") {
  CHECK(read_frame(bytes({0x81, 0x80, 0, 0, 0, 0}), 1 << 20)->size == 0);  // masked
  CHECK(read_frame(bytes({0xc1, 0x00}), 1 << 20)->size == 0);              // compressed
  CHECK(read_frame(bytes({0x82, 5}), 4)->size == 0);                       // too long
  CHECK(read_frame(bytes({0x82, 127, 255, 255, 255, 255, 255, 255, 255, 255}), 1 << 20)->size == 0);
}
