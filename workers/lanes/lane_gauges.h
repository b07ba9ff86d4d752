// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "workers/lanes/lanes.h"
#include "workers/lanes/stats.h"

namespace millrace {

// Sets the gauges of a pipeline's lanes to their present values.
void update_gauges(const Lanes& lanes, const BatchRule& rule, LaneStats& stats);

}  // namespace millrace
