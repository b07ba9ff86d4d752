// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "gpu/host/device.h"

namespace millrace {

inline constexpr std::string_view host_device_name = "host";

// The device that every machine has.
std::unique_ptr<Device> open_host_device();

// A device of that name that is the worker's alone: slabs stay on the host, as the frames are, and
// the worker copies them itself.
std::unique_ptr<Device> open_device_of_worker(std::string name);

}  // namespace millrace
