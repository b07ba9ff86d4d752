// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "gpu/cuda/devices.h"
#include "gpu/host/device_report.h"
#include "monitoring/service_stats.h"
#include "service/log/log.h"

namespace millrace {

// The devices of the service and their health. If one device fails, the process cannot use CUDA
// again and must end, even if other devices still work.
//
// Confined to one thread, except devices(), which is thread-safe.
class DeviceWatch {
 public:
  // Throws the exceptions of Devices' constructor. `log` must outlive it.
  DeviceWatch(const DeviceRule& rule, Log& log);

  Devices& devices() { return devices_; }
  const Devices& devices() const { return devices_; }

  // Logs the usable devices, or the reason why there are none.
  void log_devices();

  // Records and logs the failure of a device, by its index in Devices::usable(). Further reports of
  // the same device are ignored.
  void failed(std::size_t device_index, const DeviceLost& why);
  // A sentence for each device that has failed.
  const std::vector<std::string>& failures() const { return failures_; }

  // In the order of Devices::usable().
  const std::vector<DeviceStats>& stats() const { return stats_; }

 private:
  Log& log_;
  Devices devices_;
  std::vector<DeviceStats> stats_;
  std::vector<std::string> messages_;  // for failures_, by device: built before memory is short
  std::vector<std::string> failures_;
};

}  // namespace millrace
