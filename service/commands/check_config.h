// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "service/commands/console.h"

namespace millrace {

class CommandLine;

// Adds `check-config [FILE]`: prints what is in force with this configuration, or without one, and
// the memory that it may take; warnings, or the one line that says what is wrong and exit code 1,
// on console.err. Run as soon as it is parsed. `console` outlives `program`.
void add_check_config_command(CommandLine& program, Console& console);

}  // namespace millrace
