// SPDX-License-Identifier: Apache-2.0
#include "workers/library/device.h"

#include "gpu/cuda/devices.h"
#include "workers/library/worker.h"

namespace millrace {

namespace {

RowFormat format_of(const worker_protocol::Welcome& welcome) {
  const Element dtype = welcome.frames.element;
  return {.frames = welcome.slab_element.value_or(dtype),
          .dtype = dtype,
          .values = welcome.frames.values,
          .context = welcome.context,
          .repeat = welcome.repeat};
}

}  // namespace

WorkerDevice::WorkerDevice(const std::string& name) {
  if (name == host_) return;
  try {
    found_ = find_device(name);
    cuda::create_context(*found_);
  } catch (const DeviceFailure& error) {
    throw WorkerError(error.what(), "device");
  }
}

void WorkerDevice::attach(const worker_protocol::Welcome& welcome, std::uint32_t credits,
                          MutableBytes shared) {
  if (!found_) return;
  const RowFormat format = format_of(welcome);
  if (welcome.device) try {
      reader_ = cuda::open_slabs(*found_, format, welcome.slab_bytes, *welcome.device);
      return;
    } catch (const DeviceFailure&) {
      cannot_open_slabs_ = true;
    }
  const std::uint32_t slabs = shared.empty() ? credits : welcome.slabs;
  const std::size_t slab_bytes = shared.empty() ? layout_of({.rows = welcome.rows,
                                                             .marks = welcome.slots,
                                                             .width = welcome.width,
                                                             .values = format.values,
                                                             .element = format.frames})
                                                      .bytes
                                                : welcome.slab_bytes;
  try {
    reader_ = cuda::copy_slabs(*found_, format, slabs, slab_bytes, shared);
  } catch (const DeviceFailure& error) {
    throw WorkerError(error.what(), "device");
  }
}

}  // namespace millrace
