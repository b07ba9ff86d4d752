// SPDX-License-Identifier: Apache-2.0
#include "service/admin/readiness.h"

#include <catch2/catch.hpp>

using namespace millrace;
using Catch::Matchers::Contains;

namespace {

Readiness asr_and_optional_tts(bool asr_has_worker, bool tts_has_worker) {
  return {.pipelines = {{.name = "asr", .has_worker = asr_has_worker},
                        {.name = "tts", .required = false, .has_worker = tts_has_worker}}};
}

}  // namespace

TEST_CASE("a service is ready if each required pipeline has a worker") {
  CHECK(ready_page(asr_and_optional_tts(true, false), "/readyz").status == 200);
  const HttpAnswer page = ready_page(asr_and_optional_tts(false, true), "/readyz");
  CHECK(page.status == 503);
  CHECK(page.body == "{\"ready\":false,\"reasons\":[\"pipeline asr has no worker\"]}\n");
}

TEST_CASE("one pipeline is ready if it has a worker, required or not") {
  const Readiness readiness = asr_and_optional_tts(true, false);
  CHECK(ready_page(readiness, "/readyz?pipeline=asr").status == 200);
  const HttpAnswer page = ready_page(readiness, "/readyz?pipeline=tts");
  CHECK(page.status == 503);
  CHECK(page.body == "{\"ready\":false,\"reasons\":[\"pipeline tts has no worker\"]}\n");
}

TEST_CASE("the reasons of the service hold for each of its pipelines") {
  Readiness readiness = asr_and_optional_tts(false, true);
  readiness.service = {"the service is stopping"};
  CHECK(ready_page(readiness, "/readyz?pipeline=tts").body ==
        "{\"ready\":false,\"reasons\":[\"the service is stopping\"]}\n");
}

TEST_CASE("the answer to an unknown pipeline lists the pipelines") {
  const HttpAnswer page = ready_page(asr_and_optional_tts(true, true), "/readyz?pipeline=as");
  CHECK(page.status == 404);
  CHECK_THAT(page.body, Contains("there is no such pipeline; there are: asr, tts"));
}

TEST_CASE("a wrong parameter of a probe is not ignored") {
  const Readiness readiness = asr_and_optional_tts(true, true);
  CHECK(ready_page(readiness, "/readyz?pipelines=asr").status == 400);
  CHECK(ready_page(readiness, "/readyz?pipeline=asr&pipeline=tts").status == 400);
}

TEST_CASE("the status names an optional pipeline without a worker, and the service stays ready") {
  Readiness readiness = asr_and_optional_tts(true, false);
  readiness.impairments = {"the disk is slow"};
  const HttpAnswer page = status_page(readiness, false);
  CHECK(page.status == 200);
  CHECK(
      page.body ==
      "{\"ready\":true,\"draining\":false,\"reasons\":[],\"degraded\":[\"the disk is slow\","
      "\"pipeline tts has no worker\"],\"pipelines\":{\"asr\":\"ready\",\"tts\":\"degraded\"}}\n");
}

TEST_CASE("the status has the state of each pipeline") {
  CHECK_THAT(status_page(asr_and_optional_tts(false, true), false).body,
             Contains("\"pipelines\":{\"asr\":\"unready\",\"tts\":\"ready\"}"));
}
