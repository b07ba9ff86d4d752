// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "recording/reader/recordings.h"

namespace millrace {

// The recorded streams that `which` names, by number, each once; all if it is empty. An entry of
// digits is a number, any other a name, which several streams may have. `pipeline`: only streams of
// this pipeline; empty: of any. The error names the entry or the pipeline without a stream.
Result<std::vector<recording::RecordedStream>, std::string> select_streams(
    recording::Recordings& recordings, const std::vector<std::string>& which,
    const std::string& pipeline);

// Leaves out the streams of other pipelines, if any stream is of this one.
void select_by_pipeline(const std::string& pipeline,
                        std::vector<recording::RecordedStream>& streams);

// The metadata of the streams.
std::vector<recording::StreamMeta> metas_of(std::span<const recording::RecordedStream> streams);

// A notice that this many selected streams have no end yet.
std::string growing_notice(std::uint64_t streams);

}  // namespace millrace
