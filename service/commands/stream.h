// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "service/commands/console.h"

namespace millrace {

class CommandLine;

// Adds `stream`: streams audio files, or standard input (-), to a service as an ordinary client,
// and prints what it says as JSON lines, the stream's name and file added
//
//   stream FILE... [--url URL] [--pipeline NAME] [--realtime] [--packet TIME] [--repeat N]
//   [--streams N] [--format s16le|f32le --rate N [--channels N]]
//
// which is run as soon as it is parsed. A stream that fails is a line on console.err and, once
// the others are over, exit code 1. `console` outlives `program`.
void add_stream_command(CommandLine& program, Console& console);

}  // namespace millrace
