// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/devices.h"

#include <algorithm>

#include "gpu/host/host_device.h"

namespace millrace {

namespace {

// A MIG instance has one UUID: GPU-… in the runtime, MIG-… in nvidia-smi and CUDA_VISIBLE_DEVICES.
bool is_named(const cuda::FoundDevice& device, std::string_view name) {
  return device.name == name || device.uuid == name ||
         (name.starts_with("MIG-") && device.uuid.substr(4) == name.substr(4));
}

// The forms in which CUDA's tools name devices.
bool could_be_cuda(std::string_view name) {
  return name.starts_with("cuda:") || name.starts_with("GPU-") || name.starts_with("MIG-");
}

std::string names_of(const std::vector<cuda::FoundDevice>& devices) {
  std::string names{host_device_name};
  for (const cuda::FoundDevice& device : devices)
    names += ", " + device.name + " (" + device.uuid + ")";
  return names;
}

}  // namespace

cuda::FoundDevice find_device(std::string_view name) {
  const cuda::Machine machine = cuda::find_devices();
  std::string names;
  for (const cuda::FoundDevice& device : machine.devices) {
    if (device.name == name || (name == "cuda" && device.ordinal == 0)) return device;
    names += ", " + device.name;
  }
  throw DeviceFailure(DeviceFault::other,
                      "no device \"" + std::string(name) +
                          "\" on this machine; available: " + std::string(host_device_name) +
                          names + (machine.why_none.empty() ? "" : " (" + machine.why_none + ")"));
}

Devices::Devices(const DeviceRule& rule) : rule_(rule) {
  if (rule.use == DeviceRule::Use::host) return;
  cuda::Machine machine = cuda::find_devices();
  why_none_ = machine.why_none;
  if (rule.use == DeviceRule::Use::automatic) usable_ = machine.devices;
  for (const std::string& name : rule.listed) {
    const auto found = std::ranges::find_if(
        machine.devices, [&](const cuda::FoundDevice& device) { return is_named(device, name); });
    if (found == machine.devices.end())
      throw DeviceFailure(
          DeviceFault::other,
          "device \"" + name + "\" is not available: " +
              (machine.why_none.empty() ? "the devices are " + names_of(machine.devices)
                                        : machine.why_none));
    if (std::ranges::find(usable_, found->ordinal, &cuda::FoundDevice::ordinal) != usable_.end())
      throw DeviceFailure(DeviceFault::other, "device \"" + name + "\" is listed twice");
    usable_.push_back(*found);
  }
  for (std::size_t i = 0; i < usable_.size(); ++i) states_.emplace_back(rule.slab_bytes);
  for (std::size_t index = 0; index < rule.listed.size(); ++index) {
    (void)open(index);
    states_[index].ready = true;
  }
}

std::optional<std::size_t> Devices::find(std::string_view name) const {
  const auto named = [name](const cuda::FoundDevice& device) { return is_named(device, name); };
  const auto found = std::ranges::find_if(usable_, named);
  if (found == usable_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - usable_.begin());
}

bool Devices::is_ready(std::string_view name) const {
  const auto index = find(name);
  return !index || states_[*index].ready || states_[*index].lost;
}

void Devices::make_ready(std::string_view name) {
  if (is_ready(name)) return;
  const std::size_t index = *find(name);
  try {
    cuda::create_context(usable_[index]);
    states_[index].ready = true;
  } catch (const DeviceFailure& failure) {
    if (!failure.recoverable()) mark_lost(index);
    throw;
  }
}

Result<std::unique_ptr<Device>, DeviceError> Devices::open(std::string_view name) {
  if (name == host_device_name) return open_host_device();
  if (const auto index = find(name)) return open(*index);
  if (rule_.use != DeviceRule::Use::listed && could_be_cuda(name))
    return open_device_of_worker(std::string(name));
  return DeviceError{"unknown device \"" + std::string(name) + "\"; allowed: " + names_of(usable_)};
}

Result<std::unique_ptr<Device>, DeviceError> Devices::open(std::size_t index) {
  if (states_[index].lost.load(std::memory_order_relaxed))
    return DeviceError{"device " + usable_[index].name + " has failed"};
  return cuda::open(
      usable_[index],
      {.device_index = index, .bytes = &states_[index].memory, .lost = &states_[index].lost});
}

}  // namespace millrace
