// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "base/time.h"
#include "service/commands/console.h"

namespace millrace {

class CommandLine;

struct TapOptions {
  std::string url;  // of the service's workers; empty: the default one
  std::string pipeline = "default";
  bool checksums = false;
  Duration wait = std::chrono::seconds(30);  // for a service that does not listen yet
};

// Prints every row of a pipeline as a line (tap_lines.h), flushed with each batch before it is
// answered. A worker, whose answers are the lines, as long as it is the only one; then it leaves
// and watches. If no service listens yet, it waits, with a line on console.err. Returns when the
// service ends it, or after SIGTERM or SIGINT, which the process's first thread must have blocked.
// Throws WorkerError.
void tap(const TapOptions& options, Console& console);

// Adds `tap`: tap [--url URL] [--pipeline P] [--data none|crc32c] [--wait TIME], which is run as
// soon as it is parsed. An error is one line on console.err and exit code 1. `console` outlives the
// program's App.
void add_tap_command(CommandLine& program, Console& console);

}  // namespace millrace
