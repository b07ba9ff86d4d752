// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "commands/console/console.h"

namespace millrace {

class CommandLine;

// Adds `stream`: streams audio files, or standard input (-), to a service as an ordinary client,
// and prints its messages as JSON lines, with the file and the name of the stream. With --split,
// the lines also have the number of the channel.
//
//   stream FILE... [--url URL] [--pipeline NAME] [--id NAME] [--channel N|mean | --split]
//   [--chunk TIME] [--opus] [--realtime] [--packet TIME] [--repeat N] [--streams N]
//   [--format s16le|s24le|f32le|mulaw|alaw --rate N [--channels N]]
//
// Runs as soon as it is parsed. If a stream fails: one line on console.err, and exit code 1 when
// the others have ended. `console` must outlive `program`.
void add_stream_command(CommandLine& program, Console& console);

}  // namespace millrace
