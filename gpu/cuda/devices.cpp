// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/devices.h"

#include <algorithm>
#include <utility>

#include "gpu/host/host_device.h"

namespace millrace {

namespace {

bool is_named(const cuda::Found& device, std::string_view name) {
  return device.name == name || device.uuid == name;
}

// As CUDA's own tools name devices.
bool could_be_cuda(std::string_view name) {
  return name.starts_with("cuda:") || name.starts_with("GPU-") || name.starts_with("MIG-");
}

std::string names_of(const std::vector<cuda::Found>& devices) {
  std::string names{host_device_name};
  for (const cuda::Found& device : devices) names += ", " + device.name + " (" + device.uuid + ")";
  return names;
}

}  // namespace

Devices::Devices(const DeviceRule& rule) : rule_(rule) {
  if (rule.use == DeviceRule::Use::host) return;
  cuda::Machine machine = cuda::look();
  why_none_ = machine.why_none;
  if (rule.use == DeviceRule::Use::automatic) usable_ = machine.devices;
  for (const std::string& name : rule.listed) {
    const auto found = std::ranges::find_if(
        machine.devices, [&](const cuda::Found& device) { return is_named(device, name); });
    if (found == machine.devices.end())
      throw DeviceFailure(DeviceFault::other,
                          "device \"" + name + "\" is not there: " +
                              (machine.why_none.empty() ? "there are " + names_of(machine.devices)
                                                        : machine.why_none));
    if (std::ranges::find(usable_, found->ordinal, &cuda::Found::ordinal) != usable_.end())
      throw DeviceFailure(DeviceFault::other, "device \"" + name + "\" is listed twice");
    usable_.push_back(*found);
  }
  for (std::size_t i = 0; i < usable_.size(); ++i) at_.emplace_back(rule.slab_bytes);
  for (std::size_t place = 0; place < rule.listed.size(); ++place) {
    (void)open(place);
    at_[place].ready = true;
  }
}

std::optional<std::size_t> Devices::find(std::string_view name) const {
  const auto named = [name](const cuda::Found& device) { return is_named(device, name); };
  const auto found = std::ranges::find_if(usable_, named);
  if (found == usable_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - usable_.begin());
}

bool Devices::is_ready(std::string_view name) const {
  const auto place = find(name);
  return !place || at_[*place].ready || at_[*place].lost;
}

bool Devices::all_ready() const {
  return std::ranges::all_of(at_, [](const At& at) { return at.ready.load(); });
}

void Devices::make_ready(std::string_view name) {
  if (is_ready(name)) return;
  const std::size_t place = *find(name);
  try {
    cuda::use(usable_[place]);
    at_[place].ready = true;
  } catch (const DeviceFailure& failure) {
    if (!failure.passes()) give_up(place);
    throw;
  }
}

Result<std::unique_ptr<Device>, DeviceError> Devices::open(std::string_view name) {
  if (name == host_device_name) return open_host_device();
  if (const auto place = find(name)) return open(*place);
  if (rule_.use != DeviceRule::Use::listed && could_be_cuda(name))
    return open_device_of_worker(std::string(name));
  return DeviceError{"unknown device \"" + std::string(name) + "\"; allowed: " + names_of(usable_)};
}

Result<std::unique_ptr<Device>, DeviceError> Devices::open(std::size_t place) {
  if (at_[place].lost.load(std::memory_order_relaxed))
    return DeviceError{"device " + usable_[place].name + " has failed"};
  return cuda::open(usable_[place],
                    {.place = place, .bytes = &at_[place].memory, .lost = &at_[place].lost});
}

}  // namespace millrace
