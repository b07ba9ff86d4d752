// SPDX-License-Identifier: Apache-2.0
#include "service/admin_pages.h"

#include <catch2/catch.hpp>

using namespace millrace;

TEST_CASE("a process that works is alive") {
  const HttpAnswer page = alive_page({});
  CHECK(page.status == 200);
  CHECK(page.body == "{\"alive\":true}\n");
}

TEST_CASE("a process whose device has failed is not alive, and says which") {
  const HttpAnswer page = alive_page({"device cuda:0 has failed", "device cuda:2 has failed"});
  CHECK(page.status == 503);
  CHECK(page.type == "application/json");
  CHECK(page.body ==
        "{\"alive\":false,\"reasons\":"
        "[\"device cuda:0 has failed\",\"device cuda:2 has failed\"]}\n");
}

TEST_CASE("a service is ready where nothing speaks against it") {
  CHECK(ready_page({}).status == 200);
  const HttpAnswer page = ready_page({"pipeline asr has no worker"});
  CHECK(page.status == 503);
  CHECK(page.body == "{\"ready\":false,\"reasons\":[\"pipeline asr has no worker\"]}\n");
}
