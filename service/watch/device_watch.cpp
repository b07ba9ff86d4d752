// SPDX-License-Identifier: Apache-2.0
#include "service/watch/device_watch.h"

#include <utility>

#include "service/config/units.h"

namespace millrace {

DeviceWatch::DeviceWatch(const DeviceRule& rule, Log& log)
    : log_(log), devices_(rule), stats_(devices_.usable().size()) {
  for (DeviceStats& stats : stats_) stats.healthy.set(1);
  for (const cuda::Found& device : devices_.usable())
    sentences_.push_back("device " + device.name + " has failed");
  failures_.reserve(sentences_.size());
}

void DeviceWatch::introduce() {
  for (const cuda::Found& device : devices_.usable())
    log_.rare_info("device", {{"device", device.name},
                              {"uuid", device.uuid},
                              {"product", device.product},
                              {"memory", rounded_bytes(device.memory)}});
  if (!devices_.why_none().empty()) log_.rare_info("no device", {{"why", devices_.why_none()}});
}

void DeviceWatch::lost(std::size_t place, const DeviceLost& why) {
  Gauge& healthy = stats_[place].healthy;
  if (healthy.value() == 0) return;
  healthy.set(0);
  failures_.push_back(std::move(sentences_[place]));
  const std::string& name = devices_.usable()[place].name;
  log_.rare_error("device failed",
                  {{"device", name}, {"error", name_of(why.fault)}, {"why", why.what}});
}

}  // namespace millrace
