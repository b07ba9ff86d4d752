// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "commands/console/console.h"

namespace millrace {

class CommandLine;

// Adds `train-serve FILE [--check]`: gives the batches of a plan to trainers until SIGTERM. With
// --check it only reads the file.
//
// An error such as an invalid configuration, an unreadable folder or a port in use: one line on
// console.err, exit code 1. `console` must outlive `program`.
void add_train_serve_command(CommandLine& program, Console& console);

}  // namespace millrace
