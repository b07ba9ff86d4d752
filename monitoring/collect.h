// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/time.h"
#include "monitoring/families.h"
#include "monitoring/sources.h"

namespace millrace {

// Each function appends the families of one part of the service.
void collect_transports(const Sources& sources, Families& into);
void collect_streams(const std::vector<PipelineSource>& pipelines, Families& into);
void collect_batches(const std::vector<PipelineSource>& pipelines, Families& into);
void collect_devices(const Sources& sources, Families& into);
void collect_workers(const std::vector<PipelineSource>& pipelines, Time now, Families& into);
// Nothing without a recorder.
void collect_recording(const Sources& sources, Families& into);
// Nothing without a server of batches for training.
void collect_training(const Sources& sources, Families& into);
void collect_service(const Sources& sources, Families& into);

// The standard process_* set, from /proc/self.
void collect_process(Families& into);

}  // namespace millrace
