// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "gpu/cuda/calls.h"
#include "gpu/cuda/cuda.h"
#include "gpu/cuda/reader.h"
#include "gpu/cuda/slabs.h"
#include "gpu/cuda/sources.h"

namespace millrace::cuda {

namespace {

class CudaDevice : public Device {
 public:
  CudaDevice(const FoundDevice& device, const SlabSettings& settings)
      : device_(device), settings_(settings) {}

  std::string_view name() const override { return device_.name; }
  std::optional<std::size_t> device_index() const override { return settings_.device_index; }
  RowFormat slab_format(const RowFormat& tensor) const override { return tensor.unexpanded(); }
  std::unique_ptr<DeviceSlabs> attach(const SlabRing& ring, DeviceReports reports) override {
    return std::make_unique<CudaSlabs>(device_, settings_, ring, std::move(reports));
  }

 private:
  const FoundDevice device_;
  const SlabSettings settings_;
};

}  // namespace

void create_context(const FoundDevice& device) { const OnDevice on(device.ordinal); }

std::unique_ptr<Device> open(const FoundDevice& device, const SlabSettings& settings) {
  create_context(device);
  return std::make_unique<CudaDevice>(device, settings);
}

std::unique_ptr<DeviceReader> open_slabs(const FoundDevice& device, const RowFormat& format,
                                         std::size_t slab_bytes, const DeviceHandles& handles) {
  const OnDevice on(device.ordinal);
  return std::make_unique<CudaReader>(device.ordinal, format, open_source(slab_bytes, handles));
}

std::unique_ptr<DeviceReader> copy_slabs(const FoundDevice& device, const RowFormat& format,
                                         std::uint32_t slabs, std::size_t slab_bytes,
                                         MutableBytes pinned) {
  const OnDevice on(device.ordinal);
  return std::make_unique<CudaReader>(device.ordinal, format,
                                      copying_source(slabs, slab_bytes, pinned));
}

}  // namespace millrace::cuda
