// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "commands/console/console.h"

namespace millrace {

class CommandLine;

// Adds `replay`: replays recorded streams to workers or to a service (docs/replay.md).
//
//   replay DIR [NAME...] [--number N...] (--workers URL | --url URL) [--speed 1|N|max] [--at-once
//   N]
//          [--pipeline [FILE:]NAME] [--chunk K=V,...] [--compare]
//
// Runs as soon as it is parsed. Returns when every stream is over, or after SIGTERM or SIGINT.
// Requires: it is called on the process's first thread. Exit code 1 if a stream failed, an answer
// differs, or a signal stopped it. `console` must outlive `program`.
void add_replay_command(CommandLine& program, Console& console);

}  // namespace millrace
