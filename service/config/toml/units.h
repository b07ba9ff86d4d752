// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"

namespace millrace {

// Times and sizes as text, always with a unit.

// Parses text like "2ms" or "1.5s", in ns, us, ms, s, min or h. nullopt if it is invalid.
std::optional<Duration> parse_time(std::string_view text);
// Parses text like "20/s", from 0.001 to a million per second. nullopt if it is invalid.
std::optional<double> parse_rate(std::string_view text);
// Parses text like "64MiB", in B, KiB, MiB, GiB or TiB. nullopt if it is invalid.
std::optional<std::size_t> parse_bytes(std::string_view text);

// The value in the largest unit in which it is a whole number: 100 ms as "100ms".
std::string readable(Duration time);
std::string readable_bytes(std::size_t bytes);
// The value rounded to four digits, in the largest fitting unit: "4.292 GiB".
std::string rounded_bytes(std::size_t bytes);

}  // namespace millrace
