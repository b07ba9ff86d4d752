// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "tests/service/pipelines/admission_under_test.h"

using namespace millrace;
using Catch::Matchers::Contains;

TEST_CASE("the error that a request would get is known without a stream, and reserves nothing") {
  AdmissionUnderTest d(3);
  const auto refusal = [&](StreamRequest request) {
    const auto error = d.admission->refusal(request, {});
    return error ? error->message : "none";
  };
  CHECK_THAT(refusal({.pipeline = "other"}), Contains("there are: default, features"));
  CHECK(refusal({.rate = 7999}) == "must be a whole number from 8000 to 192000");
  for (const std::string& options : {std::string("[]"), std::string("{\"model\":\"\xff\"}"),
                                     "{\"a\":\"" + std::string(4096, 'x') + "\"}"})
    CHECK(refusal({.options = options}) == "must be a JSON object of at most 4096 bytes");
  for (int i = 0; i < 9; ++i) CHECK(refusal({.id = "kitchen"}) == "none");
  CHECK(d.open({.id = "kitchen"}).stream);
  CHECK(refusal({.id = "kitchen"}) == "another open stream has this name");
  CHECK(refusal({}) == "none");
  CHECK(d.open().stream);
  CHECK(refusal({}) == "the pipeline has no free slot for another stream");
  CHECK(d.open({.pipeline = "features"}).stream);
  CHECK(refusal({.pipeline = "features"}) == "the service has reached its limit of 3 connections");
  d.admission->refuse_all();
  CHECK(refusal({}) == "the service is stopping");
  CHECK_THAT(d.log(), !Contains("stream refused"));
}
