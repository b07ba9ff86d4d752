// SPDX-License-Identifier: Apache-2.0
// The question for the description of a pipeline, and the rows in its answer.
#include <catch2/catch.hpp>
#include <string>
#include <variant>
#include <vector>

#include "schemas/worker_codec.h"

using namespace millrace;
using namespace millrace::worker_protocol;

namespace {

constexpr std::size_t max_description = 1 << 16;

Result<ToService, WireError> asked(const Describe& describe) {
  Encoder encoder;
  Decoder decoder(max_description);
  return decoder.to_service(encoder.encode(describe));
}

Result<ToWorker, WireError> answered(std::vector<std::uint32_t> rows) {
  Encoder encoder;
  Decoder decoder(max_description);
  return decoder.to_worker(encoder.encode(Welcome{.slots = 64,
                                                  .rows = 16,
                                                  .width = 1600,
                                                  .frames = {},
                                                  .chunk = "{}",
                                                  .width_buckets = {1600},
                                                  .row_buckets = std::move(rows)}));
}

}  // namespace

TEST_CASE("a Describe is unchanged when it is written and read") {
  const Describe describe{.pipeline = "vad", .name = "vad on host 7"};
  CHECK(std::get<Describe>(*asked(describe)) == describe);
}

TEST_CASE("a Describe with impossible values is refused for its meaning") {
  CHECK(asked({.pipeline = "a\nb", .name = "w"}).error() == WireError::meaning);
  CHECK(asked({.name = std::string(257, 'a')}).error() == WireError::meaning);
}

TEST_CASE("the rows of a Welcome ascend to the most rows, or there are none") {
  using Rows = std::vector<std::uint32_t>;
  for (const Rows& rows : {Rows{}, Rows{16}, Rows{4, 16}})
    CHECK(std::get<Welcome>(*answered(rows)).row_buckets == rows);
  for (const Rows& rows : {Rows{0, 16}, Rows{16, 16}, Rows{8}, Rows{8, 4, 16}})
    CHECK(answered(rows).error() == WireError::meaning);
}
