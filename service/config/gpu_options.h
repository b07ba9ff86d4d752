// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/cuda/devices.h"
#include "service/config/options.h"
#include "service/config/toml/section.h"

namespace millrace {

// Reads the table [gpu]. It does not look for devices: the start of the service checks that the
// listed ones exist.
DeviceRule read_gpu(Section& gpu, const LimitOptions& limits);

// Reports an error if the slabs of one worker of any pipeline exceed [gpu] slab_bytes. Requires:
// [gpu] and the pipelines have been read into `options`.
void check_gpu(Section& gpu, const Options& options);

}  // namespace millrace
