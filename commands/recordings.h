// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace millrace {

class Command;

namespace recordings {
struct NamedStreams;
}

// Adds the arguments that name streams: NAME or --name, and --number. `help` is that of the names.
void add_named_streams(Command& command, recordings::NamedStreams& into, const std::string& help);

// For options that select streams by time. Sets `into` to the instant that `text` names, in
// nanoseconds since 1970: a date, or a time ago. An empty text sets nothing. The error is a line
// that names the option.
Result<void, std::string> set_instant(const char* option, const std::string& text,
                                      std::optional<std::int64_t>& into);

}  // namespace millrace
