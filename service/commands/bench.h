// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "service/commands/console.h"

namespace millrace {

class CommandLine;

// `millrace bench`: how many streams a running service carries, and how fast. Exit code 1 where
// anything was lost, doubled, damaged, refused or broken, 130 where a signal interrupted it.
void add_bench_command(CommandLine& program, Console& console);

}  // namespace millrace
