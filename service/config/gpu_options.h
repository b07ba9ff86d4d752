// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/cuda/devices.h"
#include "service/config/options.h"
#include "service/config/section.h"

namespace millrace {

// The table [gpu]. No device is looked for: whether those listed are there is seen at the start.
DeviceRule read_gpu(Section& gpu, const LimitOptions& limits);

// That each pipeline's worker finds room on a device. Requires: gpu was read, and the pipelines.
void check_gpu(Section& gpu, const Options& options);

}  // namespace millrace
