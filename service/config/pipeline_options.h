// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "service/config/options.h"
#include "service/config/section.h"

namespace millrace {

// Reads one [[pipeline]]. Errors go to the section's findings.
PipelineOptions read_pipeline(Section& section, const LimitOptions& limits);

// The default of `width_buckets`: the width of each of the rule's sizes. A range may have any
// number of sizes: only the widest.
std::vector<std::uint32_t> default_widths(const ChunkRule& chunk);

}  // namespace millrace
