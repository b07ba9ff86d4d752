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

// The devices of the service, and whether they live. What CUDA has lost it has lost for the whole
// process: one device that fails ends it, whatever others could still do.
//
// Confined to one thread, but for devices().
class DeviceWatch {
 public:
  // Throws as Devices does. `log` outlives it.
  DeviceWatch(const DeviceRule& rule, Log& log);

  Devices& devices() { return devices_; }
  const Devices& devices() const { return devices_; }

  // Tells the log which there are, or why there are none.
  void introduce();

  // A pipeline found that the device at this place of Devices::usable() has failed; others may have
  // said so before.
  void lost(std::size_t place, const DeviceLost& why);
  // A sentence for each device that has failed.
  const std::vector<std::string>& failures() const { return failures_; }

  // By Devices::usable().
  const std::vector<DeviceStats>& stats() const { return stats_; }

 private:
  Log& log_;
  Devices devices_;
  std::vector<DeviceStats> stats_;
  std::vector<std::string>
      sentences_;  // of a failure, by place: made early, as memory may be short
  std::vector<std::string> failures_;
};

}  // namespace millrace
