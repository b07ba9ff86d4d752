// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/time.h"
#include "monitoring/families.h"
#include "monitoring/sources.h"

namespace millrace {

// The families of each part of the service, in the order of docs/metrics.md.
void collect_doors(const Sources& sources, Families& into);
void collect_streams(const std::vector<PipelineSource>& pipelines, Families& into);
void collect_batches(const std::vector<PipelineSource>& pipelines, Families& into);
void collect_devices(const Sources& sources, Families& into);
void collect_workers(const std::vector<PipelineSource>& pipelines, Time now, Families& into);
void collect_service(const Sources& sources, Families& into);

// The standard process_* set, from /proc/self.
void collect_process(Families& into);

}  // namespace millrace
