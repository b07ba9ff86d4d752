// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "gpu/host/device_reader.h"

namespace millrace::bench {

// Simulates a model: keeps every multiprocessor of the current device busy for `time`.
void spin(std::chrono::microseconds time, DeviceStream stream);

}  // namespace millrace::bench
