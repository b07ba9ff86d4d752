// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "gpu/host/device.h"

namespace millrace {

inline constexpr std::string_view host_device_name = "host";

// The host: workers map the slabs, and nothing is copied.
std::unique_ptr<Device> open_host_device();

// A device that only the worker uses. Slabs stay on the host and hold unconverted frames; the
// worker copies them to the device itself. `name` is what name() returns.
std::unique_ptr<Device> open_device_of_worker(std::string name);

}  // namespace millrace
