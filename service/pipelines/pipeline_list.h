// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "service/config/options.h"

namespace millrace {

// The body of GET /v1/pipelines (docs/protocol.md): the pipelines as JSON, in the order of the
// configuration.
std::string pipeline_list(std::span<const PipelineOptions> pipelines);

}  // namespace millrace
