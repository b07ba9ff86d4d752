// SPDX-License-Identifier: Apache-2.0
#include "training/serving/trainer_memory.h"

#include <stdexcept>
#include <string>
#include <utility>

namespace millrace::training {

TrainerMemory::TrainerMemory(std::uint32_t count, std::size_t bytes, Share share, bool shared)
    : count_(count), bytes_(bytes), share_(std::move(share)) {
  if (shared)
    shared_ = SharedMemory::create(count * bytes);
  else
    own_.resize(count);
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
