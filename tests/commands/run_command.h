// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "commands/console/command_line.h"
#include "commands/console/console.h"

namespace millrace::test {

// What a command has written, and its exit code.
struct CommandOutput {
  std::string out, err;
  int exit_code;
};

// Runs the command that `add` adds with these arguments, of which the first is its name.
inline CommandOutput run_command(void (*add)(CommandLine&, Console&),
                                 const std::vector<std::string>& arguments, bool terminal = false) {
  std::ostringstream out, err;
  Console console{.out = out, .err = err, .terminal = terminal};
  CommandLine program;
  add(program, console);
  program.run(arguments, console);
  return {out.str(), err.str(), console.exit_code};
}

}  // namespace millrace::test
