// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <string>

#include "tests/gpu/simulated/program.h"

using namespace millrace::test;

namespace {

constexpr int tsan_exit_status = 66;

// The exit status of the program that plays this scene.
int end_of(const std::string& scene) {
  Program program("simulated_races", {"TSAN_OPTIONS=exitcode=66:atexit_sleep_ms=0"}, {scene});
  const int status = program.end();
  INFO(program.errors());
  return status;
}

}  // namespace

TEST_CASE("accesses that CUDA does not order are a data race") {
  const std::string scene =
      GENERATE("a page is written while it is copied", "an earlier record was waited for",
               "another stream did not wait", "another stream waited before the record",
               "another stream waited for an earlier record", "what a stream did is read at once",
               "two threads share what they give to one stream", "two threads only call CUDA both");
  CAPTURE(scene);
  CHECK(end_of(scene) == tsan_exit_status);
}

TEST_CASE("accesses that CUDA orders are not a data race") {
  const std::string scene =
      GENERATE("a page is written behind an event", "a page is written once an event has passed",
               "a page is written behind its stream", "a page is written behind the device",
               "another stream waited", "what a stream did is read behind an event",
               "a thread goes on behind another's event", "a device dies under a copy");
  CAPTURE(scene);
  CHECK(end_of(scene) == 0);
}
