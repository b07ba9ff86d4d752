// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "base/time.h"
#include "commands/console/console.h"

namespace millrace {

class CommandLine;

struct TapOptions {
  std::string url;  // workers' address of the service; empty: the default
  std::string pipeline = "default";
  bool checksums = false;
  Duration wait = std::chrono::seconds(30);  // longest wait until the service listens
};

// Prints every row of a pipeline as a line (tap_lines.h). The lines of a batch are flushed before
// it is answered. While tap is the only worker, its answers to the rows are the lines. When another
// worker attaches, tap leaves and attaches again as a watcher. If no service listens yet, it waits,
// with a line on console.err.
//
// Returns when the service ends it, or after SIGTERM or SIGINT. Requires: the process's first
// thread has blocked these. Throws WorkerError.
void tap(const TapOptions& options, Console& console);

// Adds `tap [--url URL] [--pipeline P] [--data none|crc32c] [--wait TIME]`. Runs as soon as it is
// parsed. After an error: one line on console.err, exit code 1. `console` must outlive `program`.
void add_tap_command(CommandLine& program, Console& console);

}  // namespace millrace
