// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace millrace {

class CommandLine;
struct Console;

// Adds `index`: makes or checks the index of training streams, with progress on a terminal, and
// prints streams, hours, rate, channels and digest.
//
//   index PATH [--pipeline NAME] [--verify] [--good FILE]
//
// --good leaves out audio files that cannot be used, and those that --verify finds, and writes a
// manifest of the others; then these files are no error.
//
// --verify reads every stream to its end, and prints those that are damaged, have values that are
// not finite, or have another length.
//
// Runs as soon as it is parsed. If a stream is not good, or after an error (one line on
// console.err), the exit code is 1. `console` must outlive `program`.
void add_index_command(CommandLine& program, Console& console);

}  // namespace millrace
