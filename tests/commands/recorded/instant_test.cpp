// SPDX-License-Identifier: Apache-2.0
#include "commands/recorded/instant.h"

#include <catch2/catch.hpp>

namespace millrace::recordings {
namespace {

constexpr std::int64_t second = 1'000'000'000;

TEST_CASE("an instant is printed in UTC, rounded down") {
  CHECK(iso_seconds(0) == "1970-01-01T00:00:00Z");
  CHECK(iso_seconds(1'764'017'721 * second + 999'999'999) == "2025-11-24T20:55:21Z");
  CHECK(iso_milliseconds(1'764'017'721 * second + 250'999'999) == "2025-11-24T20:55:21.250Z");
  CHECK(iso_milliseconds(-1) == "1969-12-31T23:59:59.999Z");
}

TEST_CASE("a date and a time are read as they are printed") {
  CHECK(parse_instant("1970-01-02") == 86'400 * second);
  CHECK(parse_instant("2025-11-24T20:55:21Z") == 1'764'017'721 * second);
  CHECK(parse_instant("2025-11-24 20:55:21.5") == 1'764'017'721 * second + second / 2);
  CHECK(parse_instant("2025-11-24T21:55:21+01:00") == 1'764'017'721 * second);
  CHECK(parse_instant("2025-11-24T15:25:21-0530") == 1'764'017'721 * second);
  CHECK(parse_instant("2025-11-24T20:55") == 1'764'017'700 * second);
  CHECK(parse_instant("2024-02-29"));
}

TEST_CASE("text that is no date is refused") {
  for (const char* text : {"", "2h", "yesterday", "2025-02-29", "2025-13-01", "2025-11-24T",
                           "2025-11-24T24:00", "2025-11-24T20:55Zx", "2025-11-24T20:55:21.",
                           "1969-12-31", "3000-01-01", "2025-1-1", "2025-11-24T20:55+1"})
    CHECK_FALSE(parse_instant(text));
}

TEST_CASE("a length is printed in hours, minutes and seconds") {
  CHECK(clock_time(0) == "0:00:00.00");
  CHECK(clock_time(192.4) == "0:03:12.40");
  CHECK(clock_time(3599.999) == "1:00:00.00");
  CHECK(clock_time(100 * 3600 + 61) == "100:01:01.00");
}

}  // namespace
}  // namespace millrace::recordings
