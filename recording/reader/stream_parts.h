// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "recording/reader/recordings.h"

namespace millrace::recording {

// The recordings of one stream: one, or several if the stream was lost and opened anew. These have
// the same key (StreamMeta::resumable), and are in the order of their epochs. Not empty.
using StreamParts = std::vector<RecordedStream>;

// Joins the recordings that are parts of one stream. The streams are in the order of their first
// recordings in `streams`. A recording without its begin, or with another frame type than the
// parts before it, is a stream of its own.
std::vector<StreamParts> join_parts(const std::vector<RecordedStream>& streams);

// The parts as one stream: it is whole if no event is missing from the first open to the last
// event. Its `frames` are those of all parts, also where two parts have the same positions.
RecordedStream summary_of(const StreamParts& parts);

}  // namespace millrace::recording
