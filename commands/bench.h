// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "commands/console/console.h"

namespace millrace {

class CommandLine;

// Adds `bench`: loads a running service with streams and measures it. Exit code 1 after an error,
// or if a frame, row, result or stream was lost, duplicated, damaged, refused or broken; 130 if a
// signal interrupted it. `console` must outlive `program`.
void add_bench_command(CommandLine& program, Console& console);

}  // namespace millrace
