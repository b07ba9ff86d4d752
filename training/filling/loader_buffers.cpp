// SPDX-License-Identifier: Apache-2.0
#include "training/filling/loader_buffers.h"

#include <charconv>
#include <utility>

#include "gpu/cuda/devices.h"
#include "gpu/host/host_device.h"

namespace millrace::training {

LoaderBuffers::LoaderBuffers(std::uint32_t buffers, std::string device, const RowFormat& tensor)
    : device_(std::move(device)), tensor_(tensor), buffers_(buffers) {}

bool LoaderBuffers::is_host() const { return device_ == host_device_name; }

void LoaderBuffers::open_device() {
  if (is_host() || found_) return;
  const cuda::FoundDevice found = find_device(device_);
  cuda::create_context(found);
  found_ = found;
}

// From the name, because CUDA must not be used before a process forks.
int LoaderBuffers::ordinal() const {
  if (is_host()) return -1;
  int number = 0;
  const std::size_t colon = device_.find(':');
  if (colon != std::string::npos)
    std::from_chars(device_.data() + colon + 1, device_.data() + device_.size(), number);
  return number;
}

MutableBytes LoaderBuffers::memory(std::uint32_t at, std::size_t bytes) {
  Buffer& buffer = buffers_[at];
  if (bytes <= buffer.size) return buffer.bytes();
  // Some room, so that batches of slowly growing length seldom allocate.
  const std::size_t quantum = static_cast<std::size_t>(page);
  const std::size_t wanted = bytes + (buffer.size > 0 ? bytes / 4 : 0);
  const std::size_t size = (wanted + quantum - 1) / quantum * quantum;
  buffer.reader.reset();
  buffer.size = 0;
  buffer.memory.reset();
  buffer.memory.reset(static_cast<std::byte*>(::operator new[](size, page)));
  if (found_)
    buffer.reader = cuda::copy_slabs(*found_, tensor_, 1, size, {buffer.memory.get(), size});
  buffer.size = size;
  return buffer.bytes();
}

void LoaderBuffers::written(std::uint32_t at, const SlabShape& shape) {
  Buffer& buffer = buffers_[at];
  if (buffer.reader) buffer.arrays = buffer.reader->take(0, shape, buffer.bytes());
}

const DeviceArrays* LoaderBuffers::arrays(std::uint32_t at) const {
  const auto& arrays = buffers_[at].arrays;
  return arrays ? &*arrays : nullptr;
}

void LoaderBuffers::use_on(std::uint32_t at, DeviceStream stream) {
  if (buffers_[at].reader) buffers_[at].reader->use_on(0, stream);
}

void LoaderBuffers::give_back(std::uint32_t at) {
  Buffer& buffer = buffers_[at];
  if (buffer.arrays) buffer.reader->give_back(0);
  buffer.arrays.reset();
}

}  // namespace millrace::training
