// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace millrace {

class CommandLine;
struct Console;

// Adds `plan`: prints the batches of an epoch, a JSON line [[stream,begin,end],…] for each, without
// reading frames.
//
//   plan (--streams PATH | --lengths FILE) --mode MODE --spec K=V,…
//        [--seed N] [--epoch N] [--rank N] [--world N] [--slots N] [--max-seqs N] [--batch-size N]
//        [--packed-batch-size N]
//
// Runs as soon as it is parsed. After an error: one line on console.err, exit code 1. `console`
// must outlive `program`.
void add_plan_command(CommandLine& program, Console& console);

}  // namespace millrace
