// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "recording/reader/recordings.h"

namespace millrace {

// Leaves out the streams of other pipelines, if any stream is of this one.
void select_by_pipeline(const std::string& pipeline,
                        std::vector<recording::RecordedStream>& streams);

// The metadata of the streams.
std::vector<recording::StreamMeta> metas_of(std::span<const recording::RecordedStream> streams);

// A notice that this many selected streams have no end yet.
std::string growing_notice(std::uint64_t streams);

}  // namespace millrace
