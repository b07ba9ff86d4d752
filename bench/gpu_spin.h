// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "gpu/host/device_reader.h"

namespace millrace::bench {

// In the place of a model: keeps every multiprocessor of the current device busy for that long.
void spin(std::chrono::microseconds time, DeviceStream stream);

}  // namespace millrace::bench
