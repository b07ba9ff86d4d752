// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "commands/console/console.h"

namespace millrace {

class CommandLine;

// Adds `healthcheck [--url URL] [--timeout TIME]`: exit code 0 if a GET is answered with status 200
// in time. Otherwise exit code 1, and the reason in one line on console.err. Runs as soon as it is
// parsed. `console` must outlive `program`.
void add_healthcheck_command(CommandLine& program, Console& console);

}  // namespace millrace
