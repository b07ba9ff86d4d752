// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/ring.h"
#include "streams/block_pool.h"

namespace millrace {

// The frames of one stream that somebody still needs, in blocks. A frame never moves, from when
// it is appended until it is released. Frames are named by index: how many were appended before
// them, so that gaps take no room. An empty buffer holds no block. Confined to one thread.
class FrameBuffer {
 public:
  // The least that blocks must have so that a window of `width` frames is in one or two of them.
  static std::size_t block_bytes(std::size_t frame_bytes, std::uint32_t width);

  // The pool must outlive it. Requires: the pool's blocks have room for a frame.
  FrameBuffer(BlockPool& pool, std::size_t frame_bytes);
  ~FrameBuffer();
  FrameBuffer(const FrameBuffer&) = delete;
  FrameBuffer& operator=(const FrameBuffer&) = delete;

  // Where to write the next frames: room for at least one and at most `frames` >= 1 of them.
  MutableBytes room(std::size_t frames);
  // The first `frames` of what room() gave last were written.
  void append(std::size_t frames);
  // Takes back what was appended from `index` on. Requires: none of it was released.
  void truncate(std::uint64_t index);

  // Requires: they are appended and not released, and in at most two blocks.
  std::array<Bytes, 2> window(std::uint64_t index, std::size_t frames) const;

  // Nobody needs the frames before `index` any more. Less than before changes nothing.
  void release(std::uint64_t index);

  std::uint64_t end() const { return end_; }  // behind the last frame
  std::uint64_t held() const { return end_ - released_; }

 private:
  void give_back_unused();

  BlockPool& pool_;
  const std::size_t frame_bytes_;
  const std::size_t block_frames_;
  Ring<BlockPool::Block> blocks_;
  std::uint64_t first_ = 0;  // index of the first frame in the first block
  std::uint64_t released_ = 0;
  std::uint64_t end_ = 0;
};

}  // namespace millrace
