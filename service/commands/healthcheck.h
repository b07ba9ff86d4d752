// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "service/commands/console.h"

namespace CLI {
class App;
}

namespace millrace {

// Adds `healthcheck [--url URL] [--timeout TIME]`: exit code 0 where a GET is answered with 200
// in time, else 1 and why in one line on console.err. Run as soon as it is parsed. `console`
// outlives the program's App.
void add_healthcheck_command(CLI::App& program, Console& console);

}  // namespace millrace
