// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "service/commands/console.h"

namespace CLI {
class App;
}

namespace millrace {

// Adds `check-config [FILE]`: prints what is in force with this configuration, or without one, and
// the memory that it may take; warnings, or the one line that says what is wrong and exit code 1,
// on console.err. Run as soon as it is parsed. `console` outlives the program's App.
void add_check_config_command(CLI::App& program, Console& console);

}  // namespace millrace
