// SPDX-License-Identifier: Apache-2.0
#include "commands/console/progress.h"

#include <catch2/catch.hpp>
#include <sstream>

namespace millrace {
namespace {

const Time start{std::chrono::seconds(1)};

TEST_CASE("progress is rewritten in place at most ten times per second, and removed at the end") {
  std::ostringstream err;
  {
    Progress progress(err, true);
    progress.show("1 of 9", start);
    progress.show("2 of 9", start + std::chrono::milliseconds(99));
    progress.show("3 of 9", start + std::chrono::milliseconds(100));
    progress.note("a note");
  }
  CHECK(err.str() == "\r1 of 9\x1b[K\r3 of 9\x1b[K\r\x1b[Ka note\n");
}

TEST_CASE("without a terminal there are only notes") {
  std::ostringstream err;
  {
    Progress progress(err, false);
    CHECK_FALSE(progress.due(start));
    progress.show("1 of 9", start);
    progress.note("a note");
  }
  CHECK(err.str() == "a note\n");
}

TEST_CASE("bytes are printed with three digits and a decimal unit") {
  CHECK(decimal_bytes(0) == "0 B");
  CHECK(decimal_bytes(999) == "999 B");
  CHECK(decimal_bytes(1000) == "1 kB");
  CHECK(decimal_bytes(1'234'567) == "1.23 MB");
  CHECK(decimal_bytes(999'999'999) == "1 GB");
  CHECK(decimal_bytes(268'435'456) == "268 MB");
}

TEST_CASE("a count agrees with its noun") {
  CHECK(counted(0, "file") == "0 files");
  CHECK(counted(1, "file") == "1 file");
}

}  // namespace
}  // namespace millrace
