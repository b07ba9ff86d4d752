// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "gpu/host/shared_memory.h"
#include "gpu/host/slab_layout.h"
#include "schemas/worker_messages.h"
#include "transport/net/file_descriptor.h"
#include "workers/library/worker_batch.h"

namespace millrace {

// Where the batches of one worker lie: in the service's slabs, mapped here, or, where tensors come
// inline, in memory of its own. Confined to one thread.
class MappedSlabs {
 public:
  // Throws WorkerError where what came with Welcome are not the slabs that it promises.
  MappedSlabs(const worker_protocol::Welcome& welcome, const FileDescriptor& descriptor);

  // The batch in its slab, where it stays until give_back. An inline tensor is copied, and its view
  // cleared. Nothing where the batch is not as Welcome says.
  std::optional<WorkerBatch> place(worker_protocol::HandedBatch batch);
  void give_back(const BatchPlace& place);

  // The service's slabs, all of them; empty where tensors come inline.
  MutableBytes shared() const { return shared_ ? shared_->bytes() : MutableBytes(); }

 private:
  struct Deleter {
    void operator()(std::byte* memory) const {
      ::operator delete[](memory, std::align_val_t{slab_alignment});
    }
  };
  struct Own {
    std::unique_ptr<std::byte[], Deleter> memory;
    std::size_t size = 0;
    bool used = false;
  };

  bool possible(const worker_protocol::HandedBatch& batch) const;
  std::uint32_t own_slab(std::size_t bytes);

  std::uint32_t slots_, rows_, width_, slab_count_;
  std::size_t slab_bytes_;
  FrameType frames_;
  Element element_;  // of what lies in slabs
  std::optional<SharedMemory> shared_;
  std::vector<Own> own_;
};

}  // namespace millrace
