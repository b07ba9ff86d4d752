// SPDX-License-Identifier: Apache-2.0
#include "service/watch/device_watch.h"

#include <utility>

#include "service/config/toml/units.h"

namespace millrace {

DeviceWatch::DeviceWatch(const DeviceRule& rule, Log& log)
    : log_(log), devices_(rule), stats_(devices_.usable().size()) {
  for (DeviceStats& stats : stats_) stats.healthy.set(1);
  for (const cuda::FoundDevice& device : devices_.usable())
    messages_.push_back("device " + device.name + " has failed");
  failures_.reserve(messages_.size());
}

void DeviceWatch::log_devices() {
  for (const cuda::FoundDevice& device : devices_.usable())
    log_.rare_info("device", {{"device", device.name},
                              {"uuid", device.uuid},
                              {"product", device.product},
                              {"memory", rounded_bytes(device.memory)}});
  if (!devices_.why_none().empty()) log_.rare_info("no device", {{"why", devices_.why_none()}});
}

void DeviceWatch::failed(std::size_t device_index, const DeviceLost& why) {
  Gauge& healthy = stats_[device_index].healthy;
  if (healthy.value() == 0) return;
  healthy.set(0);
  failures_.push_back(std::move(messages_[device_index]));
  const std::string& name = devices_.usable()[device_index].name;
  log_.rare_error("device failed",
                  {{"device", name}, {"error", name_of(why.fault)}, {"why", why.what}});
}

}  // namespace millrace
