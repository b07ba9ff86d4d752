// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "service/commands/console.h"

namespace millrace {

class CommandLine;

// Adds `healthcheck [--url URL] [--timeout TIME]`: exit code 0 where a GET is answered with 200
// in time, else 1 and why in one line on console.err. Run as soon as it is parsed. `console`
// outlives `program`.
void add_healthcheck_command(CommandLine& program, Console& console);

}  // namespace millrace
