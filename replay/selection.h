// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "recording/reader/recordings.h"
#include "recording/reader/stream_parts.h"

namespace millrace {

// Leaves out the streams of other pipelines, if any stream is of this one.
void select_by_pipeline(const std::string& pipeline, std::vector<recording::StreamParts>& streams);

// The metadata with which the streams were opened first, by number, with `opened_steady` of one
// clock: a machine that starts again begins its steady clock anew, so the wall clock counts from
// the last stream of a run of the service to the first one of the next run.
std::vector<recording::StreamMeta> metas_of(const recording::Recordings& recordings,
                                            std::span<const recording::StreamParts> streams);

// A notice that this many selected streams have no end yet.
std::string growing_notice(std::uint64_t streams);

}  // namespace millrace
