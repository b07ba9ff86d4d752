// SPDX-License-Identifier: Apache-2.0
#include "gpu/device.h"

#include "gpu/host_device.h"

namespace millrace {

Result<std::unique_ptr<Device>, DeviceError> open_device(std::string_view name) {
  if (name == host_device_name) return open_host_device();
  return DeviceError{"unknown device \"" + std::string(name) + "\"; allowed: host"};
}

}  // namespace millrace
