// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include "base/budget.h"
#include "gpu/host/shared_memory.h"
#include "gpu/host/slab_layout.h"
#include "training/filling/batch_buffers.h"

namespace millrace::training {

// The memory of one trainer's batches: slabs that a trainer on this machine maps, or buffers of
// this process, whose batches are sent.
//
// As BatchBuffers. descriptor() and close_descriptor() are called by the owner's thread.
class TrainerMemory final : public BatchBuffers {
 public:
  // `shared`: slabs of shared memory. Otherwise buffers, which are allocated when they are first
  // written. `bytes`: of a slab, and the most of a buffer. Throws std::system_error.
  TrainerMemory(std::uint32_t count, std::size_t bytes, Share share, bool shared);

  MutableBytes memory(std::uint32_t buffer, std::size_t bytes) override;
  std::size_t most_bytes() const override { return bytes_; }
  // The memory of a buffer that was written.
  Bytes written_memory(std::uint32_t buffer) const;

  std::uint32_t count() const { return count_; }
  bool is_shared() const { return shared_.has_value(); }
  std::size_t slab_bytes() const { return bytes_; }
  int descriptor() const { return shared_->descriptor(); }
  void close_descriptor() { shared_->close_descriptor(); }

 private:
  struct Deleter {
    void operator()(std::byte* memory) const {
      ::operator delete[](memory, std::align_val_t{slab_alignment});
    }
  };
  struct Buffer {
    std::unique_ptr<std::byte[], Deleter> memory;
    std::size_t size = 0;
  };

  const std::uint32_t count_;
  const std::size_t bytes_;
  const Share share_;
  std::optional<SharedMemory> shared_;
  std::vector<Buffer> own_;  // without shared_
};

}  // namespace millrace::training
