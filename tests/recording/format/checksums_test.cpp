// SPDX-License-Identifier: Apache-2.0
#include "recording/format/checksums.h"

#include <catch2/catch.hpp>
#include <optional>
#include <span>
#include <string_view>

#include "recording/format/row_digest.h"

using namespace millrace;
using namespace millrace::recording;

namespace {

// As Row of chunker/row.h.
struct Row {
  std::uint64_t seq = 0, begin = 0;
  std::uint32_t left = 0, size = 0, right = 0;
  std::uint8_t flags = 0;
  enum class Reason : std::uint8_t { none, start } reason = Reason::none;
  std::uint64_t gap = 0;
  std::optional<std::uint64_t> mark{};
};

}  // namespace

TEST_CASE("crc32 is the checksum of zlib, crc32c that of Castagnoli") {
  CHECK(crc32(bytes_in("123456789")) == 0xcbf43926);
  CHECK(crc32c(bytes_in("123456789")) == 0xe3069283);
  CHECK(crc32({}) == 0);
  CHECK(crc32c({}) == 0);
}

TEST_CASE("the checksum of two parts is that of the whole") {
  const Bytes whole = bytes_in("123456789");
  for (std::size_t at = 0; at <= whole.size(); ++at) {
    CHECK(crc32(whole.subspan(at), crc32(whole.first(at))) == 0xcbf43926);
    CHECK(crc32c(whole.subspan(at), crc32c(whole.first(at))) == 0xe3069283);
  }
}

// The expected values are computed bit by bit in Python, from the bytes of
// struct.pack("<QQIIIBBQq", 1, 2, 3, 4, 5, 6, 1, 7, 8) and (2, 0, 0, 0, 0, 0, 0, 0, -1).
TEST_CASE("the digest of rows is the checksum of their fields") {
  RowDigest digest;
  CHECK(digest.value() == 0);
  digest.add(Row{.seq = 1,
                 .begin = 2,
                 .left = 3,
                 .size = 4,
                 .right = 5,
                 .flags = 6,
                 .reason = Row::Reason::start,
                 .gap = 7,
                 .mark = 8});
  CHECK(digest.value() == 0xe0654701);
  digest.add(Row{.seq = 2});
  CHECK(digest.value() == 0x569a1ed0);
  CHECK(digest.rows() == 2);
}
