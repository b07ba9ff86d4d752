// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"

namespace millrace {

// Times and sizes as people write them, always with their unit.

// "2ms", "1.5s": of ns, us, ms, s, min, h. Nothing where it is something else.
std::optional<Duration> parse_time(std::string_view text);
// "64MiB": of B, KiB, MiB, GiB, TiB.
std::optional<std::size_t> parse_bytes(std::string_view text);

// In the largest unit that leaves it whole: 100 ms as "100ms".
std::string readable(Duration time);
// The same of bytes; rounded to four digits: "4.292 GiB".
std::string readable_bytes(std::size_t bytes);
std::string rounded_bytes(std::size_t bytes);

}  // namespace millrace
