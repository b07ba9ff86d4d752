// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "service/commands/console.h"

namespace millrace {

class CommandLine;

// Adds `chunk`: the rows that a stream would yield, as JSON lines
//
//   chunk (--spec K=V,… | --preset NAME) (FILE | --frames N | --events FILE) [--values] [--rate R]
//
// which is run as soon as it is parsed. An error is one line on console.err and exit code 1.
// `console` outlives `program`.
void add_chunk_command(CommandLine& program, Console& console);

}  // namespace millrace
