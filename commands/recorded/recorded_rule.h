// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "chunker/spec.h"
#include "recording/reader/recordings.h"

namespace millrace::recordings {

// The rule by which the service cut a stream. The error is a sentence that names the stream.
Result<ChunkRule, std::string> recorded_rule(const recording::RecordedStream& stream);

}  // namespace millrace::recordings
