// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <string>

#include "tests/gpu/simulated/program.h"

TEST_CASE("only accesses that CUDA does not order are a data race") {
  const auto [scene, race] = GENERATE(table<std::string, bool>({
      {"a page is written while it is copied", true},
      {"an earlier record was waited for", true},
      {"another stream did not wait", true},
      {"two threads only call CUDA both", true},
      {"a page is written behind an event", false},
      {"a page is written once an event has passed", false},
      {"another stream waited", false},
  }));
  CAPTURE(scene);
  constexpr int tsan_exit_status = 66;
  millrace::test::Program program("simulated_races", {"TSAN_OPTIONS=exitcode=66:atexit_sleep_ms=0"},
                                  {scene});
  CHECK(program.end() == (race ? tsan_exit_status : 0));
}
