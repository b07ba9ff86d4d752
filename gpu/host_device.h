// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "gpu/device.h"

namespace millrace {

inline constexpr std::string_view host_device_name = "host";

// The device that every machine has.
std::unique_ptr<Device> open_host_device();

}  // namespace millrace
