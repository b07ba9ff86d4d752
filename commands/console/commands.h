// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "commands/console/console.h"

namespace millrace {

class CommandLine;

// The commands of the program: each function adds one to the command line. A command runs as soon
// as it is parsed. After an error: one line on console.err, exit code 1. `console` must outlive
// `program`.

// `serve [--config FILE]`: runs the service until SIGTERM. Without a file it listens on loopback
// with defaults that work. A listed device that does not exist: exit code 78.
void add_serve_command(CommandLine& program, Console& console);

// `stream FILE...`: streams audio files, or standard input (-), to a service as an ordinary client,
// and prints its messages as JSON lines, with the file and the name of the stream. With --split,
// the lines also have the number of the channel. If a stream fails, the others continue.
void add_stream_command(CommandLine& program, Console& console);

// `tap [--url URL] [--pipeline P] [--data none|crc32c] [--wait TIME]`: prints each row of a
// pipeline as a line of JSON, until the service ends it, or until SIGTERM or SIGINT. Requires: it
// is called on the process's first thread, or that one has blocked these signals.
void add_tap_command(CommandLine& program, Console& console);

// `chunk`: prints the rows of a stream as JSON lines.
//
//   chunk (--spec K=V,… | --preset NAME | --config FILE [--pipeline P])
//         (FILE | --frames N | --events FILE) [--values] [--rate R] [--name NAME] [--plot OUT]
void add_chunk_command(CommandLine& program, Console& console);

// `recordings ls|show|verify|repair|export|rm DIR …` (docs/recording.md): commands on a directory
// of recordings, which a service may be writing.
void add_recordings_command(CommandLine& program, Console& console);

// `replay DIR`: replays recorded streams to workers or to a service (docs/replay.md). Returns when
// every stream is over, or after SIGTERM or SIGINT. Exit code 1 if a stream failed, an answer
// differs, or a signal stopped it. Requires: it is called on the process's first thread.
void add_replay_command(CommandLine& program, Console& console);

// `bench`: loads a running service with streams and measures it. Exit code 1 also if a frame, row,
// result or stream was lost, duplicated, damaged, refused or broken; 130 if a signal interrupted
// it.
void add_bench_command(CommandLine& program, Console& console);

// `index PATH [--pipeline NAME] [--verify] [--good FILE]`: makes or checks the index of training
// streams, and prints streams, hours, rate, channels and digest. --verify reads every stream to its
// end, and prints those that are damaged, have values that are not finite, or have another length.
// Exit code 1 if a stream is not good. --good leaves out audio files that cannot be used, and those
// that --verify finds, and writes a manifest of the others; then these files are no error.
void add_index_command(CommandLine& program, Console& console);

// `plan`: prints the batches of an epoch, a JSON line [[stream,begin,end],…] for each, without
// reading frames.
//
//   plan (--streams PATH | --lengths FILE) --mode MODE --spec K=V,…
//        [--seed N] [--epoch N] [--rank N] [--world N] [--slots N] [--max-seqs N] [--batch-size N]
//        [--packed-batch-size N] [--order ORDER] [--buckets N]
//        [--split NAME=FRACTION,…] [--part NAME] [--max-stream LENGTH]
void add_plan_command(CommandLine& program, Console& console);

// `train-serve FILE [--check]`: gives the batches of a plan to trainers until SIGTERM. With --check
// it only reads the file.
void add_train_serve_command(CommandLine& program, Console& console);

// `check-worker [--config FILE] [--pipeline P] [--streams PATH] [--tolerance T] -- COMMAND`: plays
// the service to a worker, and compares the answers to streams alone with those to streams
// together. Exit code 1 also if an answer differs, or nothing was compared. Requires: it is called
// on the process's first thread.
void add_check_worker_command(CommandLine& program, Console& console);

// `check-config [FILE]`: prints the effective values of the configuration (without FILE, the
// defaults) and the memory that they allow. Warnings go to console.err.
void add_check_config_command(CommandLine& program, Console& console);

// `healthcheck [--url URL] [--timeout TIME]`: succeeds if a GET is answered with status 200 in
// time.
void add_healthcheck_command(CommandLine& program, Console& console);

// `token new [NAME]`: prints a new token, and on the next line its line for the file of [access]
// tokens.
void add_token_command(CommandLine& program, Console& console);

}  // namespace millrace
