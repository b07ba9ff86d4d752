// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/companion.h"
#include "base/file_descriptor.h"
#include "base/row_columns.h"
#include "gpu/host/shared_memory.h"
#include "gpu/host/slab_layout.h"
#include "schemas/worker_messages.h"
#include "workers/library/worker_batch.h"
#include "workers/plan/plan_text.h"

namespace millrace {

// The memory of one worker's batches: the service's slabs, mapped into this process, or, if tensors
// are sent inline, memory that this object allocates. Confined to one thread.
class MappedSlabs {
 public:
  // `descriptor` came with Welcome; empty if tensors are sent inline. Throws WorkerError if it does
  // not hold the slabs that Welcome describes, or if batches are too large.
  MappedSlabs(const worker_protocol::Welcome& welcome, const FileDescriptor& descriptor);

  // The batch in its slab, where it stays until release(). Copies an inline tensor. Returns nullopt
  // if the batch does not match Welcome.
  std::optional<WorkerBatch> make_batch(worker_protocol::HandedBatch batch);
  void release(const SlabRef& slab);

  // All slabs of the service; empty if tensors are sent inline.
  MutableBytes shared() const { return shared_ ? shared_->bytes() : MutableBytes(); }

 private:
  struct Deleter {
    void operator()(std::byte* memory) const {
      ::operator delete[](memory, std::align_val_t{slab_alignment});
    }
  };
  struct InlineSlab {
    std::unique_ptr<std::byte[], Deleter> memory;
    std::size_t size = 0;
    bool used = false;
  };

  bool is_valid(const worker_protocol::HandedBatch& batch) const;
  std::span<const CompanionFormat> companions() const {
    return plan_ ? std::span<const CompanionFormat>(plan_->companions)
                 : std::span<const CompanionFormat>();
  }
  std::uint32_t inline_slab(std::size_t bytes);
  bool has_inline_size(const worker_protocol::HandedBatch& batch, const SlabShape& shape) const;

  std::uint32_t slots_, rows_, slab_count_;
  std::vector<std::uint32_t> width_buckets_;
  RowColumns columns_;
  std::size_t slab_bytes_;
  FrameType frames_;
  std::optional<PlanText> plan_;  // to a trainer
  Element element_;               // type of the values in the slabs
  std::optional<SharedMemory> shared_;
  std::vector<InlineSlab> inline_slabs_;
};

}  // namespace millrace
