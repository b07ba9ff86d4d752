// SPDX-License-Identifier: Apache-2.0
// The endpoints in the answers of a worker.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "schemas/worker_codec.h"
#include "tests/schemas/damage.h"
#include "tests/support/allocations.h"
#include "tests/support/golden.h"

using namespace millrace;
using namespace millrace::worker_protocol;

namespace {

constexpr std::size_t longest = 1 << 20;

// Two of its answers end the segments of their rows, one of them without other content.
const Done ending{
    .batch = BatchId{8},
    .answers = {{Answer::Kind::json, "1", true}, {Answer::Kind::json, "2"}, {.endpoint = true}},
    .mark_answers = {},
    .taken = from_wire(1000),
    .done = from_wire(2000)};

std::vector<std::byte> written(const Done& done) {
  Encoder encoder;
  return copy_of(encoder.encode(done));
}

Done written_and_read(const Done& done) {
  return std::get<Done>(*Decoder(longest).to_service(written(done)));
}

// What the service makes of the message `ending` after its vector of endpoints, a length and three
// values, is replaced. A byte of padding follows the values.
Result<ToService, WireError> with_endpoints(const std::array<std::uint8_t, 7>& replacement) {
  std::vector<std::byte> message = written(ending);
  const std::array<std::uint8_t, 7> vector{3, 0, 0, 0, 1, 0, 1};
  const auto at = std::ranges::search(message, std::as_bytes(std::span(vector))).begin();
  REQUIRE(at != message.end());
  std::ranges::copy(std::as_bytes(std::span(replacement)), at);
  return Decoder(longest).to_service(message);
}

}  // namespace

TEST_CASE(
    "endpoints are unchanged when they are written and read, with and without other content") {
  CHECK(written_and_read(ending) == ending);
  Done only;
  only.answers = {{}, {.endpoint = true}};
  only.mark_answers = {{.endpoint = true}};
  CHECK(written_and_read(only) == only);
}

TEST_CASE("a message with endpoints equals the golden file") {
  const auto message = written(ending);
  CHECK(message == golden("worker_done_endpoints.bin", message));
}

TEST_CASE("an answer that becomes an error still ends its segment") {
  Done bad;
  bad.answers = {{Answer::Kind::json, "NaN", true}, {Answer::Kind::text, "\xff", true}};
  const Done got = written_and_read(bad);
  REQUIRE(got.answers.size() == 2);
  for (const Answer& answer : got.answers) {
    CHECK(answer.kind == Answer::Kind::error);
    CHECK(answer.endpoint);
  }
}

TEST_CASE("a Done with more or fewer endpoints than answers is refused for its meaning") {
  CHECK(with_endpoints({3, 0, 0, 0, 1, 0, 1}).has_value());
  CHECK(with_endpoints({2, 0, 0, 0, 1, 0, 1}).error() == WireError::meaning);
  CHECK(with_endpoints({4, 0, 0, 0, 1, 0, 1}).error() == WireError::meaning);
  CHECK(with_endpoints({0, 0, 0, 0, 1, 0, 1}).error() == WireError::meaning);
}

TEST_CASE("an endpoint other than 0 and 1 is refused for its meaning") {
  CHECK(with_endpoints({3, 0, 0, 0, 0, 0, 0}).has_value());
  CHECK(with_endpoints({3, 0, 0, 0, 2, 0, 1}).error() == WireError::meaning);
  CHECK(with_endpoints({3, 0, 0, 0, 1, 0, 255}).error() == WireError::meaning);
}

TEST_CASE("in steady state endpoints need no allocation") {
  Encoder encoder;
  Decoder decoder(longest);
  const auto round = [&] {
    decoder.reuse(std::get<Done>(*decoder.to_service(encoder.encode(ending))));
  };
  round();
  const std::size_t before = test::allocations();
  for (int i = 0; i < 10; ++i) round();
  CHECK(test::allocations() == before);
}

TEST_CASE("no damaged message with endpoints is read beyond its end") {
  Decoder decoder(longest);
  std::size_t endpoints = 0;
  const auto read = [&](Bytes bytes) {
    const auto message = decoder.to_service(bytes);
    const auto* done = message ? std::get_if<Done>(&*message) : nullptr;
    if (!done) return;
    for (const Answer& answer : done->answers) endpoints += answer.endpoint;
  };
  damage(written(ending), read);
  random_messages(written(ending), read);
  CHECK(endpoints > 0);
}
