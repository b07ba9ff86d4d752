// SPDX-License-Identifier: Apache-2.0
#include "service/admin/stream_query.h"

#include <catch2/catch.hpp>

using namespace millrace;

namespace {

// "parameter: message", or "" if the query is accepted.
std::string problem(std::string_view parameters) {
  const auto query = parse_stream_query("/streams?" + std::string(parameters));
  if (query) return {};
  CHECK(query.error().status == 400);
  return query.error().parameter + ": " + query.error().message;
}

}  // namespace

TEST_CASE("without parameters the 1000 oldest streams of all pipelines are listed") {
  CHECK(*parse_stream_query("/streams") == StreamQuery{StreamOrder::age, 1000, ""});
}

TEST_CASE("limit, order and pipeline are read, percent-encoded too") {
  CHECK(*parse_stream_query("/streams?limit=10&order=held&pipeline=a%73r") ==
        StreamQuery{StreamOrder::held, 10, "asr"});
  CHECK(*parse_stream_query("/streams?limit=10000&order=name") ==
        StreamQuery{StreamOrder::name, 10'000, ""});
}

TEST_CASE("a limit that is not a number from 1 to 10000 is refused with the allowed range") {
  for (const char* limit : {"-1", "0", "10001", "1000000000", "99999999999999999999", "ten", "",
                            "1.5", "1%00", "+1", "0x10", " 1"})
    CHECK(problem("limit=" + std::string(limit)) ==
          "limit: must be a whole number from 1 to 10000");
}

TEST_CASE("other wrong parameters are refused by name") {
  CHECK(problem("order=size") == "order: must be age, held or name");
  CHECK(problem("pipeline=") == "pipeline: must be the name of a pipeline");
  CHECK(problem("limit=1&limit=1") == "limit: given twice");
  CHECK(problem("limit=%zz") == "limit: malformed percent-encoding");
  CHECK(problem("sort=age") ==
        "sort: no such parameter; allowed are limit, order, pipeline and tenant");
}
