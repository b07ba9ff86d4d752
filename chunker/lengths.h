// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "chunker/spec.h"

namespace millrace {

// The lengths of a rule as people write them.

// Frames as a number ("1600"), or as a time ("100ms", "0.1s") that is whole frames at `rate`; at
// most max_window. The error is what comes behind `key = "text"` in a message.
Result<std::uint32_t, std::string> parse_length(std::string_view text, double rate);

// Nothing where the time is not whole frames, or more than max_window.
std::optional<std::uint32_t> whole_frames(double seconds, double rate);

// Nine digits: 16000 as "16000", 12.5 as "12.5".
std::string readable(double number);

// The message `key = "value" sentence`.
SpecError wrong(std::string_view key, std::string_view value, std::string_view sentence);

}  // namespace millrace
