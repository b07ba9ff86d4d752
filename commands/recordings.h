// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "commands/console/console.h"

namespace millrace {

class Command;
class CommandLine;

namespace recordings {
struct NamedStreams;
}
// Adds `recordings ls|show|verify|repair|export|rm DIR …` (docs/recording.md): commands on a
// directory of recordings, which a service may be writing. Each runs as soon as it is parsed. After
// an error: one line on console.err, exit code 1. `console` must outlive `program`.
void add_recordings_command(CommandLine& program, Console& console);

// Adds the arguments that name streams: NAME or --name, and --number. `help` is that of the names.
void add_named_streams(Command& command, recordings::NamedStreams& into, const std::string& help);

// For options that select streams by time. Sets `into` to the instant that `text` names, in
// nanoseconds since 1970: a date, or a time ago. An empty text sets nothing. The error is a line
// that names the option.
Result<void, std::string> set_instant(const char* option, const std::string& text,
                                      std::optional<std::int64_t>& into);

}  // namespace millrace
