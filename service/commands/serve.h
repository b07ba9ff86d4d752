// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "service/commands/console.h"

namespace millrace {

class CommandLine;

// Adds `serve`: the service itself, until SIGTERM
//
//   serve [--config FILE]
//
// Without a file it listens on loopback with working defaults. A wrong configuration or a port in
// use is one line on console.err and exit code 1, a listed device that is not there one and 78.
// `console` outlives `program`.
void add_serve_command(CommandLine& program, Console& console);

}  // namespace millrace
