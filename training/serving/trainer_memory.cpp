// SPDX-License-Identifier: Apache-2.0
#include "training/serving/trainer_memory.h"

#include <stdexcept>
#include <string>
#include <utility>

namespace millrace::training {

std::unique_ptr<TrainerMemory> TrainerMemory::shared(std::uint32_t slabs, std::size_t bytes,
                                                     Share share) {
  std::unique_ptr<TrainerMemory> memory(new TrainerMemory(slabs, bytes, std::move(share)));
  memory->shared_ = SharedMemory::create(slabs * bytes);
  return memory;
}

std::unique_ptr<TrainerMemory> TrainerMemory::own(std::uint32_t buffers, std::size_t bytes,
                                                  Share share) {
  std::unique_ptr<TrainerMemory> memory(new TrainerMemory(buffers, bytes, std::move(share)));
  memory->own_.resize(buffers);
  return memory;
}

MutableBytes TrainerMemory::memory(std::uint32_t buffer, std::size_t bytes) {
  if (bytes > bytes_)
    throw std::length_error("a batch of " + std::to_string(bytes) + " bytes is longer than a slab");
  if (shared_) return shared_->bytes().subspan(buffer * bytes_, bytes_);
  Buffer& own = own_[buffer];
  if (own.size < bytes) {
    own.memory.reset(
        static_cast<std::byte*>(::operator new[](bytes, std::align_val_t{slab_alignment})));
    own.size = bytes;
  }
  return {own.memory.get(), own.size};
}

Bytes TrainerMemory::written_memory(std::uint32_t buffer) const {
  if (shared_) return shared_->bytes().subspan(buffer * bytes_, bytes_);
  return {own_[buffer].memory.get(), own_[buffer].size};
}

}  // namespace millrace::training
