// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "chunker/spec.h"

namespace millrace {

// The lengths of a chunk rule as text.

// Parses frames as a number ("1600"), or as a time ("100ms", "0.1s") that is whole frames at
// `rate`; at most max_window. The error is the part of a message after `key = "text"`.
Result<std::uint32_t, std::string> parse_length(std::string_view text, double rate);

// True for a number in quotes, such as "100" in TOML, JSON or Python. There it could be frames or
// milliseconds: frames are numbers, and times have a unit.
bool lacks_unit(std::string_view quoted);
inline constexpr std::string_view unit_missing =
    "must be a number without quotes, or a time with its unit, such as \"100ms\"";

// The number of frames in `seconds`; nullopt if it is not whole, or is more than max_window.
std::optional<std::uint32_t> whole_frames(double seconds, double rate);

// The number with up to nine significant digits: 16000 as "16000", 12.5 as "12.5".
std::string readable(double number);

// The message `key = "value" sentence`.
SpecError wrong(std::string_view key, std::string_view value, std::string_view sentence);

}  // namespace millrace
