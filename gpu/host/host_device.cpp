// SPDX-License-Identifier: Apache-2.0
#include "gpu/host/host_device.h"

#include <utility>

namespace millrace {

namespace {

// Batches are read where they were written.
class HostReader : public DeviceReader {
 public:
  DeviceArrays take(std::uint32_t, const SlabShape& shape, MutableBytes host) override {
    const SlabLayout layout = layout_of(shape);
    const auto numbers = [&](std::size_t at) {
      return reinterpret_cast<const std::int32_t*>(host.data() + at);
    };
    const auto bytes = [&](std::size_t at) {
      return reinterpret_cast<const std::uint8_t*>(host.data() + at);
    };
    return {.tensor = host.data(),
            .slot = numbers(layout.slots),
            .left = numbers(layout.left),
            .size = numbers(layout.size),
            .right = numbers(layout.right),
            .flags = bytes(layout.flags),
            .reset = bytes(layout.reset),
            .companions = host.data() + layout.companions};
  }
  bool has_arrived(std::uint32_t) const override { return true; }
  void renew_flags(const DeviceArrays&, std::uint32_t, const SlabShape&, MutableBytes) override {}
  void use_on(std::uint32_t, DeviceStream) override {}
  void give_back(std::uint32_t) override {}
};

// Workers map the slabs: a batch has arrived as soon as it is written.
class HostSlabs : public DeviceSlabs {
 public:
  Copying copy(std::uint32_t, const SlabShape&) override { return Copying::there; }
  bool give_back(std::uint32_t) override { return true; }
  void stop() override {}
  const DeviceHandles* handles() const override { return nullptr; }
  bool pinned() const override { return false; }
  std::unique_ptr<DeviceReader> reader(const RowFormat&) override {
    return std::make_unique<HostReader>();
  }
};

class HostDevice : public Device {
 public:
  std::string_view name() const override { return host_device_name; }
  RowFormat slab_format(const RowFormat& tensor) const override { return tensor; }
  std::unique_ptr<DeviceSlabs> attach(const SlabRing&, DeviceReports) override {
    return std::make_unique<HostSlabs>();
  }
};

class DeviceOfWorker : public HostDevice {
 public:
  explicit DeviceOfWorker(std::string name) : name_(std::move(name)) {}

  std::string_view name() const override { return name_; }
  RowFormat slab_format(const RowFormat& tensor) const override { return tensor.unexpanded(); }

 private:
  std::string name_;
};

}  // namespace

std::unique_ptr<Device> open_host_device() { return std::make_unique<HostDevice>(); }

std::unique_ptr<Device> open_device_of_worker(std::string name) {
  return std::make_unique<DeviceOfWorker>(std::move(name));
}

}  // namespace millrace
