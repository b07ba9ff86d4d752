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

// How slabs come onto a device. Confined to one thread, on which the device is the current one.
class SlabSource {
 public:
  virtual ~SlabSource() = default;

  virtual std::uint32_t slabs() const = 0;
  virtual std::size_t slab_bytes() const = 0;

  // Whether the slab is there to arrive.
  virtual bool has_arrived(std::uint32_t slab) const = 0;
  // Where the slab lies on the device once `stream` gets here.
  virtual std::byte* arrive(std::uint32_t slab, std::size_t bytes, MutableBytes host,
                            cudaStream_t stream) = 0;
  // It is read no more once `stream` gets here.
  virtual void leave(std::uint32_t slab, cudaStream_t stream) = 0;
};

// Reads what a source brings. On one stream of its own a slab arrives and becomes the tensor; on
// another the streams of the model come together again before it leaves, so that no slab that
// arrives is behind a model that still computes.
class CudaReader final : public DeviceReader {
 public:
  // `format` is that of the tensor. Throws DeviceFailure.
  CudaReader(int ordinal, const RowFormat& format, std::unique_ptr<SlabSource> source);

  ~CudaReader() override;

  bool has_arrived(std::uint32_t slab) const override { return source_->has_arrived(slab); }
  DeviceArrays take(std::uint32_t slab, const SlabShape& shape, MutableBytes host) override;
  void renew_flags(const DeviceArrays& arrays, std::uint32_t slab, const SlabShape& shape,
                   MutableBytes host) override;
  void use_on(std::uint32_t slab, DeviceStream stream) override;
  void give_back(std::uint32_t slab) override;

 private:
  struct Taken {
    Event ready;   // on arriving_
    Event joined;  // on a stream of the model
    Event left;    // on leaving_
    std::vector<cudaStream_t> users;
  };

  std::byte* tensor_of(std::uint32_t slab, std::byte* at, const SlabShape& shape);

  const int ordinal_;
  const RowFormat format_;
  std::unique_ptr<SlabSource> source_;
  Stream arriving_, leaving_;
  std::vector<Taken> taken_;      // by slab
  std::size_t tensor_bytes_ = 0;  // of one slab
  Memory tensors_;                // null where slabs hold the tensor itself
};

}  // namespace millrace::cuda
