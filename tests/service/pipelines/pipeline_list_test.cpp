// SPDX-License-Identifier: Apache-2.0
#include "service/pipelines/pipeline_list.h"

#include <catch2/catch.hpp>

using namespace millrace;

TEST_CASE(
    "the pipelines are listed with the frames that they take, and the sizes of their chunks") {
  const auto configuration = parse_options(R"(
[[pipeline]]
chunk = { size = "100ms" }
[[pipeline]]
name = "sizes"
rate = 8000
channels = 2
chunk = { size = "80ms", sizes = ["80ms", "160ms"] }
[[pipeline]]
name = "features"
rate = 12.5
dim = 80
chunk = { size = 3 }
)",
                                           "test.toml");
  REQUIRE(configuration.has_value());
  CHECK(pipeline_list(configuration->options.pipelines) ==
        R"({"pipelines":[{"name":"default","rate":16000,"channels":1,"chunk":"100ms"},)"
        R"({"name":"sizes","rate":8000,"channels":2,"chunk":"80ms, 160ms"},)"
        R"({"name":"features","rate":12.5,"dim":80,"chunk":"240ms"}]})");
}
