// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "gpu/cuda/cuda.h"
#include "gpu/host/device_reader.h"
#include "gpu/host/row_format.h"
#include "training/filling/batch_buffers.h"

namespace millrace::training {

// The buffers of a loader. Each is allocated when it is first written, and grows to the longest
// batch that it has held. On a CUDA device its pages are locked if possible, and it has device
// memory of its own: a batch is copied as soon as it is written.
//
// As BatchBuffers; open_device() and arrays() are called by the consumer.
class LoaderBuffers final : public BatchBuffers {
 public:
  // Uses no device yet. `tensor`: the format of the tensors.
  LoaderBuffers(std::uint32_t buffers, std::string device, const RowFormat& tensor);

  // Opens the device, if that was not done yet. Throws DeviceFailure.
  void open_device();
  // The number of the CUDA device; -1: the host.
  int ordinal() const;
  // The format in which batches are written.
  RowFormat format() const { return is_host() ? tensor_ : tensor_.unexpanded(); }

  MutableBytes memory(std::uint32_t buffer, std::size_t bytes) override;
  void written(std::uint32_t buffer, const SlabShape& shape) override;
  void dropped(std::uint32_t buffer) override { give_back(buffer); }

  // The memory of a written batch, and its arrays on the device; null on the host.
  MutableBytes memory(std::uint32_t buffer) const { return buffers_[buffer].bytes(); }
  const DeviceArrays* arrays(std::uint32_t buffer) const;
  // As DeviceReader.
  void use_on(std::uint32_t buffer, DeviceStream stream);
  void give_back(std::uint32_t buffer);

 private:
  // Own pages: those of a device are locked.
  static constexpr std::align_val_t page{4096};
  struct Deleter {
    void operator()(std::byte* memory) const { ::operator delete[](memory, page); }
  };
  struct Buffer {
    std::unique_ptr<std::byte[], Deleter> memory;
    std::size_t size = 0;
    std::unique_ptr<DeviceReader> reader;  // destroyed first: it unlocks the pages
    std::optional<DeviceArrays> arrays;
    MutableBytes bytes() const { return {memory.get(), size}; }
  };

  bool is_host() const;

  const std::string device_;
  const RowFormat tensor_;
  std::optional<cuda::FoundDevice> found_;
  std::vector<Buffer> buffers_;
};

}  // namespace millrace::training
