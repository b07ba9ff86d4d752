// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "service/commands/console.h"

namespace millrace {

class CommandLine;

// Adds `recordings ls|show|verify|repair|export|rm DIR …` (docs/recording.md): commands on a
// directory of recordings, which a service may be writing. Each runs as soon as it is parsed. After
// an error: one line on console.err, exit code 1. `console` must outlive `program`.
void add_recordings_command(CommandLine& program, Console& console);

}  // namespace millrace
