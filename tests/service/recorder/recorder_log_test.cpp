// SPDX-License-Identifier: Apache-2.0
#include "service/recorder/recorder_log.h"

#include <catch2/catch.hpp>

#include "tests/service/log/logged.h"

using namespace millrace;
using Catch::Matchers::Contains;

TEST_CASE("a deletion and a rewrite are lines that name the files and the reason") {
  test::Logged logged;
  {
    RecorderLog log(*logged.writer);
    log.deleted({.files = {3, 4, 6}, .by_age = 2, .bytes = 700});
    log.rewritten(7, 500);
  }
  const std::string text = logged.text();
  CHECK_THAT(text, Contains(" level=info event=\"recording deleted\" files=3 first=0000000003.mcap "
                            "last=0000000006.mcap bytes=700 keep_for=2 keep=1\n"));
  CHECK_THAT(text, Contains(" level=info event=\"recording rewritten\" file=0000000007.mcap "
                            "bytes=500 why=\"streams were removed\"\n"));
}
