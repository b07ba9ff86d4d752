// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "commands/console/console.h"

namespace millrace {

class CommandLine;

// Adds `chunk`: prints the rows of a stream as JSON lines.
//
//   chunk (--spec K=V,… | --preset NAME | --config FILE [--pipeline P])
//         (FILE | --frames N | --events FILE) [--values] [--rate R] [--name NAME] [--plot OUT]
//
// Runs as soon as it is parsed. After an error: one line on console.err, exit code 1. `console`
// must outlive `program`.
void add_chunk_command(CommandLine& program, Console& console);

}  // namespace millrace
