// SPDX-License-Identifier: Apache-2.0
#include "streams/frames/frame_buffer.h"

#include <algorithm>
#include <cassert>

namespace millrace {

// The smallest block is a page: small rows share it.
std::size_t FrameBuffer::block_bytes(std::size_t frame_bytes, std::uint32_t width) {
  constexpr std::size_t page = 4096;
  return frame_bytes * std::max<std::size_t>({width, page / frame_bytes, 1});
}

FrameBuffer::FrameBuffer(BlockPool& pool, std::size_t frame_bytes)
    : pool_(pool), frame_bytes_(frame_bytes), block_frames_(pool.block_bytes() / frame_bytes) {
  assert(block_frames_ > 0);
}

FrameBuffer::~FrameBuffer() { release(end_); }

MutableBytes FrameBuffer::writable(std::size_t frames) {
  assert(frames > 0);
  // Frames begin at the start of a block, so that a stream that keeps no frames between its rows
  // has each row in one piece.
  if (blocks_.empty()) first_ = end_;
  if (end_ == first_ + blocks_.size() * block_frames_) blocks_.push_back(pool_.allocate());
  const std::size_t used = static_cast<std::size_t>(end_ - first_) % block_frames_;
  const std::size_t fitting = std::min(frames, block_frames_ - used);
  return {blocks_.back().get() + used * frame_bytes_, fitting * frame_bytes_};
}

void FrameBuffer::append(std::size_t frames) {
  end_ += frames;
  assert(end_ <= first_ + blocks_.size() * block_frames_);
}

void FrameBuffer::truncate(std::uint64_t index) {
  assert(released_ <= index && index <= end_);
  end_ = index;
  give_back_unused();
}

std::array<Bytes, 2> FrameBuffer::window(std::uint64_t index, std::size_t frames) const {
  assert(released_ <= index && index + frames <= end_);
  if (frames == 0) return {};
  const auto offset = static_cast<std::size_t>(index - first_);
  const std::size_t block = offset / block_frames_, begin = offset % block_frames_;
  const std::size_t in_first = std::min(frames, block_frames_ - begin);
  assert(frames - in_first <= block_frames_);
  const Bytes first(blocks_[block].get() + begin * frame_bytes_, in_first * frame_bytes_);
  if (in_first == frames) return {first, Bytes()};
  return {first, Bytes(blocks_[block + 1].get(), (frames - in_first) * frame_bytes_)};
}

void FrameBuffer::release(std::uint64_t index) {
  assert(index <= end_);
  released_ = std::max(released_, index);
  give_back_unused();
}

void FrameBuffer::give_back_unused() {
  for (; !blocks_.empty() && first_ + block_frames_ <= released_; first_ += block_frames_)
    pool_.give_back(blocks_.pop_front());
  while (!blocks_.empty() && (held() == 0 || end_ <= first_ + (blocks_.size() - 1) * block_frames_))
    pool_.give_back(blocks_.pop_back());
}

}  // namespace millrace
