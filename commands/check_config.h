// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "commands/console/console.h"

namespace millrace {

class CommandLine;

// Adds `check-config [FILE]`: prints the effective values of the configuration (without FILE, the
// defaults) and the memory that they allow. Warnings go to console.err. If the configuration is
// invalid, prints one line on console.err; exit code 1. Runs as soon as it is parsed. `console`
// must outlive `program`.
void add_check_config_command(CommandLine& program, Console& console);

}  // namespace millrace
