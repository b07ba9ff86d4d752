// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/frame_type.h"
#include "chunker/spec.h"
#include "input/endpoint_rule.h"
#include "service/config/toml/section.h"

namespace millrace {

// The keys of a [[pipeline]] that decide where its streams are cut. `section` is that of the
// pipeline, whose findings get the errors.

// Reads `chunk`.
ChunkRule read_chunk(Section& section, const FrameType& frames);
// Reads `endpoint`; nullopt if it is not set.
std::optional<EndpointRule> read_endpoint(Section& section, const FrameType& frames);

}  // namespace millrace
