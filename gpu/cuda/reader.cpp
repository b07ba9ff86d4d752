// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/reader.h"

#include <algorithm>
#include <utility>

#include "gpu/cuda/kernels.h"

namespace millrace::cuda {

namespace {

template <class T>
const T* array(const std::byte* slab, std::size_t at) {
  return reinterpret_cast<const T*>(slab + at);
}

// The largest tensor of a slab, rounded up to slab_alignment.
std::size_t expanded_bytes(const RowFormat& format, std::size_t slab_bytes) {
  const std::size_t bytes = slab_bytes / size_of(format.frames) * size_of(format.dtype);
  return (bytes + slab_alignment - 1) / slab_alignment * slab_alignment;
}

}  // namespace

CudaReader::CudaReader(int ordinal, const RowFormat& format, std::unique_ptr<SlabSource> source)
    : ordinal_(ordinal), format_(format), source_(std::move(source)) {
  const OnDevice on(ordinal_);
  input_ = make_urgent_stream();  // the model computes on the batch before, with many blocks
  release_ = make_stream();
  const auto event = [] { return make_event(cudaEventDisableTiming); };
  for (std::uint32_t slab = 0; slab < source_->slabs(); ++slab)
    slabs_.push_back({event(), event(), event(), {}});
  if (format.frames == format.dtype) return;
  load_expand(format);
  tensor_bytes_ = expanded_bytes(format, source_->slab_bytes());
  tensors_ = allocate(tensor_bytes_ * source_->slabs());
}

// Waits until no slab is being copied, expanded or released. The streams of the model are not used:
// they may have been destroyed.
CudaReader::~CudaReader() {
  try {
    const OnDevice on(ordinal_);
    ignore(cudaStreamSynchronize(input_.get()));
    ignore(cudaStreamSynchronize(release_.get()));
    source_.reset();
    tensors_.reset();
    slabs_.clear();
  } catch (const DeviceFailure&) {  // nothing is under way on a failed device
  }
}

DeviceArrays CudaReader::take(std::uint32_t slab, const SlabShape& shape, MutableBytes host) {
  const OnDevice on(ordinal_);
  const SlabLayout layout = layout_of(shape);
  check(cudaStreamWaitEvent(input_.get(), slabs_[slab].released.get(), 0), "waiting for a slab");
  std::byte* const at = source_->acquire(slab, layout.bytes, host, input_.get());
  DeviceArrays arrays{.tensor = tensor_of(slab, at, shape),
                      .slot = array<std::int32_t>(at, layout.slots),
                      .left = array<std::int32_t>(at, layout.left),
                      .size = array<std::int32_t>(at, layout.size),
                      .right = array<std::int32_t>(at, layout.right),
                      .flags = array<std::uint8_t>(at, layout.flags),
                      .reset = array<std::uint8_t>(at, layout.reset),
                      .companions = at + layout.companions,
                      .ready = slabs_[slab].ready.get()};
  check(cudaEventRecord(slabs_[slab].ready.get(), input_.get()), "recording an event");
  return arrays;
}

void CudaReader::renew_flags(const DeviceArrays& arrays, std::uint32_t slab, const SlabShape& shape,
                             MutableBytes host) {
  const OnDevice on(ordinal_);
  const SlabLayout layout = layout_of(shape);
  auto* const at = reinterpret_cast<std::byte*>(const_cast<std::uint8_t*>(arrays.flags));
  check(cudaMemcpyAsync(at, host.data() + layout.flags, layout.companions - layout.flags,
                        cudaMemcpyHostToDevice, input_.get()),
        "copying flags");
  check(cudaEventRecord(slabs_[slab].ready.get(), input_.get()), "recording an event");
}

std::byte* CudaReader::tensor_of(std::uint32_t slab, std::byte* at, const SlabShape& shape) {
  if (!tensors_) return at;
  std::byte* const tensor = tensors_.get() + slab * tensor_bytes_;
  const SlabLayout layout = layout_of(shape);
  expand({.frames = at,
          .left = array<std::int32_t>(at, layout.left),
          .size = array<std::int32_t>(at, layout.size),
          .right = array<std::int32_t>(at, layout.right),
          .rows = shape.rows,
          .width = shape.width},
         format_, tensor, input_.get());
  return tensor;
}

void CudaReader::use_on(std::uint32_t slab, DeviceStream stream) {
  const OnDevice on(ordinal_);
  const auto user = static_cast<cudaStream_t>(stream);
  auto& users = slabs_[slab].users;
  if (std::ranges::find(users, user) != users.end()) return;
  check(cudaStreamWaitEvent(user, slabs_[slab].ready.get(), 0), "waiting for a batch");
  users.push_back(user);
}

void CudaReader::give_back(std::uint32_t slab) {
  const OnDevice on(ordinal_);
  SlabState& state = slabs_[slab];
  for (cudaStream_t user : state.users) {
    check(cudaEventRecord(state.joined.get(), user), "recording an event");
    check(cudaStreamWaitEvent(release_.get(), state.joined.get(), 0), "waiting for a CUDA stream");
  }
  state.users.clear();
  // If no stream used the batch, its expansion may be still under way.
  check(cudaStreamWaitEvent(release_.get(), state.ready.get(), 0), "waiting for a CUDA stream");
  source_->release(slab, release_.get());
  check(cudaEventRecord(state.released.get(), release_.get()), "recording an event");
}

}  // namespace millrace::cuda
