// SPDX-License-Identifier: Apache-2.0
#include "schemas/client_codec.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <limits>

#include "tests/schemas/damage.h"
#include "tests/support/golden.h"

using namespace millrace;

namespace {

constexpr std::size_t max_size = 4096;

const std::array<std::byte, 5> payload{std::byte{0}, std::byte{1}, std::byte{2}, std::byte{0xfe},
                                       std::byte{0xff}};

BytesResult example() {
  return {.stream = "mic-7",
          .seq = 3,
          .begin = 4800,
          .end = 6400,
          .begin_s = 0.3,
          .end_s = 0.4,
          .flags = 16,
          .data = payload};
}

bool same(const BytesResult& a, const BytesResult& b) {
  return a.stream == b.stream && a.seq == b.seq && a.begin == b.begin && a.end == b.end &&
         a.begin_s == b.begin_s && a.end_s == b.end_s && a.flags == b.flags &&
         std::ranges::equal(a.data, b.data);
}

}  // namespace

TEST_CASE("a result with bytes comes back as it was") {
  ClientEncoder encoder;
  AlignedMessage scratch;
  const auto result = decode_result(encoder.encode_result(example()), max_size, scratch);
  REQUIRE(result.has_value());
  CHECK(same(*result, example()));
}

TEST_CASE("an encoder's next message knows nothing of the one before") {
  ClientEncoder encoder;
  AlignedMessage scratch;
  (void)encoder.encode_result(example());
  BytesResult small;
  small.stream = "a";
  const auto result = decode_result(encoder.encode_result(small), max_size, scratch);
  REQUIRE(result.has_value());
  CHECK(same(*result, small));
}

TEST_CASE("a result's bytes are those of the golden file") {
  ClientEncoder encoder;
  const Bytes message = encoder.encode_result(example());
  CHECK(copy_of(message) == golden("client_result.bin", message));
}

TEST_CASE("a result that cannot be is refused for its meaning") {
  ClientEncoder encoder;
  AlignedMessage scratch;
  const auto refusal = [&](const BytesResult& result) {
    return decode_result(encoder.encode_result(result), max_size, scratch).error();
  };
  auto result = example();
  result.stream = "../etc";
  CHECK(refusal(result) == WireError::meaning);
  result = example();
  result.end = 4799;
  CHECK(refusal(result) == WireError::meaning);
  result = example();
  result.end_s = std::numeric_limits<double>::quiet_NaN();
  CHECK(refusal(result) == WireError::meaning);
}

TEST_CASE("a result longer than the limit is refused before it is read") {
  ClientEncoder encoder;
  AlignedMessage scratch;
  const Bytes message = encoder.encode_result(example());
  CHECK(decode_result(message, message.size() - 1, scratch).error() == WireError::too_long);
  CHECK(decode_result(message, message.size(), scratch).has_value());
}

TEST_CASE("no damaged result is read out of its bounds") {
  ClientEncoder encoder;
  AlignedMessage scratch;
  int sum = 0;
  const auto read = [&](Bytes bytes) {
    if (const auto result = decode_result(bytes, max_size, scratch)) {
      for (const char c : result->stream) sum += c;
      for (const std::byte b : result->data) sum += static_cast<int>(b);
    }
  };
  const Bytes message = encoder.encode_result(example());
  damage(message, read);
  random_messages(message, read);
  CHECK(sum > 0);
}
