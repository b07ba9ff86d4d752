// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "service/config/options.h"
#include "service/config/toml/section.h"

namespace millrace {

// Reads one [[pipeline]]. Errors go to the section's findings.
PipelineOptions read_pipeline(Section& section, const LimitOptions& limits);

}  // namespace millrace
