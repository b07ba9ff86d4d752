// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "gpu/cuda/calls.h"
#include "gpu/host/device_reader.h"
#include "gpu/host/row_format.h"

namespace millrace::cuda {

// Supplies slabs in device memory to a CudaReader. Its functions throw DeviceFailure. Confined to
// one thread, on which the device must be the current one.
class SlabSource {
 public:
  virtual ~SlabSource() = default;

  virtual std::uint32_t slabs() const = 0;
  virtual std::size_t slab_bytes() const = 0;

  // True if the slab can be acquired.
  virtual bool has_arrived(std::uint32_t slab) const = 0;
  // Puts on `stream` what brings the slab to the device, if anything, and returns its address
  // there. A source that copies reads `bytes` bytes from `host`.
  virtual std::byte* acquire(std::uint32_t slab, std::size_t bytes, MutableBytes host,
                             cudaStream_t stream) = 0;
  // The slab is not read any more after the work that `stream` has now.
  virtual void release(std::uint32_t slab, cudaStream_t stream) = 0;
};

// The reader of slabs on a CUDA device. It has two streams. On one a slab is acquired and expanded
// into the tensor. On the other the model's streams are joined before the slab is released, so that
// the next slab does not wait for a model that still computes. Confined to one thread, as every
// DeviceReader.
class CudaReader final : public DeviceReader {
 public:
  // `ordinal` is that of the device; `format` is that of the tensor. Throws DeviceFailure.
  CudaReader(int ordinal, const RowFormat& format, std::unique_ptr<SlabSource> source);

  ~CudaReader() override;

  bool has_arrived(std::uint32_t slab) const override { return source_->has_arrived(slab); }
  DeviceArrays take(std::uint32_t slab, const SlabShape& shape, MutableBytes host) override;
  void renew_flags(const DeviceArrays& arrays, std::uint32_t slab, const SlabShape& shape,
                   MutableBytes host) override;
  void use_on(std::uint32_t slab, DeviceStream stream) override;
  void give_back(std::uint32_t slab) override;

 private:
  struct SlabState {
    Event ready;                      // recorded on input_
    Event joined;                     // recorded on each stream of the model
    Event released;                   // recorded on release_
    std::vector<cudaStream_t> users;  // streams of the model
  };

  std::byte* tensor_of(std::uint32_t slab, std::byte* at, const SlabShape& shape);

  const int ordinal_;
  const RowFormat format_;
  std::unique_ptr<SlabSource> source_;
  Stream input_, release_;
  std::vector<SlabState> slabs_;  // by slab
  std::size_t tensor_bytes_ = 0;  // bytes of one slab's tensor
  Memory tensors_;                // null if slabs hold the tensor itself
};

}  // namespace millrace::cuda
