// SPDX-License-Identifier: Apache-2.0
#include "service/admin/admin_pages.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>

#include "tests/service/log/logged.h"

using namespace millrace;
using namespace std::chrono_literals;

TEST_CASE("a process that works is alive") {
  const HttpAnswer page = alive_page({});
  CHECK(page.status == 200);
  CHECK(page.body == "{\"alive\":true}\n");
}

TEST_CASE("a process whose device has failed is not alive, and names the device") {
  const HttpAnswer page = alive_page({"device cuda:0 has failed", "device cuda:2 has failed"});
  CHECK(page.status == 503);
  CHECK(page.type == "application/json");
  CHECK(page.body ==
        "{\"alive\":false,\"reasons\":"
        "[\"device cuda:0 has failed\",\"device cuda:2 has failed\"]}\n");
}

TEST_CASE("a service is ready unless there is a reason against it") {
  CHECK(ready_page({}).status == 200);
  const HttpAnswer page = ready_page({"pipeline asr has no worker"});
  CHECK(page.status == 503);
  CHECK(page.body == "{\"ready\":false,\"reasons\":[\"pipeline asr has no worker\"]}\n");
}

TEST_CASE("the page of the log has the last warnings and errors as objects") {
  test::Logged logged;
  RecentLog recent(*logged.writer);
  logged.log->warning("worker lost", {{"worker", "gpu-0"}});
  logged.log->info("worker attached", {{"worker", "gpu-0"}});
  logged.log->error("out of memory", {});
  const HttpAnswer page = log_page(recent);
  CHECK(page.type == "application/json");
  CHECK_THAT(page.body, Catch::Matchers::Matches(
                            R"(\{"log":\[\{"time":"[^"]+Z","level":"warning","event":"worker )"
                            R"(lost","worker":"gpu-0"\},\{"time":"[^"]+Z","level":"error","event":)"
                            R"("out of memory"\}\]\}\n)"));
}

TEST_CASE("the page of streams has plain decimals, the oldest stream first, and their number") {
  StreamList first, second;
  first.lines.push_back({.name = "young", .pipeline = "asr", .age = 1500ms});
  first.total = 1;
  second.lines.push_back({.name = "a \"b\"",
                          .pipeline = "asr",
                          .format = "mulaw",
                          .rate = 8000,
                          .chunk = 80ms,
                          .frames = 140'800,
                          .signal = 8800ms,
                          .age = 3h,
                          .held = 320ms,
                          .held_bytes = 10'240,
                          .paused = true,
                          .peer = "127.0.0.1:40000"});
  second.total = 4000;
  CHECK(streams_page({}, {first, second}).body ==
        "{\"total\":4001,\"streams\":[{\"stream\":\"a "
        "\\\"b\\\"\",\"pipeline\":\"asr\",\"format\":\"mulaw\",\"rate\":8000,\"chunk_s\":0.080000,"
        "\"frames\":140800,"
        "\"signal_s\":8.800,\"age_s\":10800.000,\"held_s\":0.320,\"held_bytes\":10240,\"paused\":"
        "true,\"connected\":true,"
        "\"peer\":\"127.0.0.1:40000\"},"
        "{\"stream\":\"young\",\"pipeline\":\"asr\",\"format\":\"\",\"rate\":0,\"chunk_s\":0."
        "000000,\"frames\":0,\"signal_s\":0.000,\"age_s\":1.500,"
        "\"held_s\":0.000,\"held_bytes\":0,\"paused\":false,\"connected\":true,\"peer\":\"\"}]}\n");
}

TEST_CASE("the page of streams has no more lines than the limit") {
  std::vector<StreamList> parts(3);
  for (StreamList& part : parts) {
    part.lines.resize(7);
    part.total = 5000;
  }
  const std::string page = streams_page({.limit = 10}, std::move(parts)).body;
  CHECK(page.starts_with("{\"total\":15000,"));
  CHECK(std::ranges::count(page, '{') == 1 + 10);
}

TEST_CASE("the page of workers has the state of each worker and its last failure") {
  WorkerStatus worker;
  worker.name = "gpu-0";
  worker.slots = 64;
  worker.slots_used = 12;
  worker.credits = 2;
  worker.in_flight = 1;
  worker.batches = 812;
  worker.compute_p50 = 8100us;
  worker.compute_p99 = 24ms;
  worker.oldest = 5ms;
  worker.attached = 1h;
  const std::string begin =
      "{\"workers\":[{\"worker\":\"gpu-0\",\"pipeline\":\"asr\",\"remote\":false,\"leaving\":false,"
      "\"slots\":64,\"slots_used\":12,\"credits\":2,\"in_flight\":1,\"batches\":812,"
      "\"compute_p50_s\":0.008100,\"compute_p99_s\":0.024000,\"oldest_batch_s\":0.005,"
      "\"attached_s\":3600.000,\"last_failure\":";
  CHECK(workers_page({{"asr", {worker}}}).body == begin + "null}]}\n");
  worker.last_failure = {"no heartbeat for 6 s", 90s};
  CHECK(workers_page({{"vad", {}}, {"asr", {worker}}}).body ==
        begin + "{\"why\":\"no heartbeat for 6 s\",\"ago_s\":90.000}}]}\n");
}
