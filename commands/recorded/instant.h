// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace millrace::recordings {

// Instants of the wall clock, in nanoseconds since 1970, as text in UTC. All functions are pure.

// "2026-11-24T20:55:21Z", or with milliseconds "2026-11-24T20:55:21.250Z".
std::string iso_seconds(std::int64_t instant);
std::string iso_milliseconds(std::int64_t instant);

// Parses a date, or a date and a time: "2026-11-24", "2026-11-24T20:55", "2026-11-24 20:55:21.5Z",
// "2026-11-24T20:55:21+01:00". Without a zone it is UTC. nullopt if it is invalid, or outside the
// years 1970 to 2261.
std::optional<std::int64_t> parse_instant(std::string_view text);

// A time in seconds as "0:03:12.40": hours, minutes, seconds.
std::string clock_time(double seconds);

}  // namespace millrace::recordings
