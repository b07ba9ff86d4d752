// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "commands/console/console.h"

namespace millrace {

class CommandLine;

// Adds `serve [--config FILE]`: runs the service until SIGTERM. Without a file it listens on
// loopback with defaults that work.
//
// An error such as an invalid configuration or a port in use: one line on console.err, exit code 1.
// A listed device that does not exist: one line, exit code 78. `console` must outlive `program`.
void add_serve_command(CommandLine& program, Console& console);

}  // namespace millrace
