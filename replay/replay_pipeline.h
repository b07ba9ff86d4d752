// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "recording/reader/recordings.h"
#include "service/config/options.h"

namespace millrace {

// The pipeline that the command line asks for.
struct PipelineChoice {
  std::string file{};   // a configuration file; empty: defaults
  std::string name{};   // the pipeline in `file`; without a file, only its streams are replayed
  std::string chunk{};  // a rule like "size=1600,left=64"; empty: the recorded one
};

// The pipeline of a replay to workers.
struct ReplayPipeline {
  PipelineOptions options;
  DeviceRule gpu{};
  std::size_t slab_bytes = LimitOptions{}.slab_bytes;
  bool other_rule = false;  // options.chunk is not the recorded rule
  std::string note{};       // one line for people; empty: none
};

// One pipeline for all these streams. They must have the same frame type and, without `chunk`, the
// same rule. Slots, batches, state, dtype and devices are those of the configuration file. Without
// one they are those of the newest stream that has recorded them, or the defaults. The error is one
// line that names the difference, and what to select.
Result<ReplayPipeline, std::string> replay_pipeline(
    std::span<const recording::RecordedStream> streams, const PipelineChoice& choice);

// Parses "NAME" or "FILE:NAME" into `into`.
void set_pipeline(PipelineChoice& into, const std::string& text);

}  // namespace millrace
