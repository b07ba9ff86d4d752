// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "service/commands/console.h"

namespace CLI {
class App;
}

namespace millrace {

// Adds `serve`: the service itself, until SIGTERM
//
//   serve [--config FILE]
//
// Without a file it listens on loopback with working defaults. A wrong configuration or a port in
// use is one line on console.err and exit code 1, a listed device that is not there one and 78.
// `console` outlives the program's App.
void add_serve_command(CLI::App& program, Console& console);

}  // namespace millrace
