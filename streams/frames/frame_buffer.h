// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/ring.h"
#include "streams/frames/block_pool.h"

namespace millrace {

// The frames of one stream that are still needed, in blocks. A frame does not move from append() to
// release(). A frame is named by its index, the number of frames appended before it, so that gaps
// take no memory. An empty buffer holds no block. Confined to one thread.
class FrameBuffer {
 public:
  // The smallest block in bytes for which a window of `width` frames is in one or two blocks.
  static std::size_t block_bytes(std::size_t frame_bytes, std::uint32_t width);

  // The pool must outlive it. Requires: a block holds at least one frame.
  FrameBuffer(BlockPool& pool, std::size_t frame_bytes);
  ~FrameBuffer();
  FrameBuffer(const FrameBuffer&) = delete;
  FrameBuffer& operator=(const FrameBuffer&) = delete;

  // Memory for the next frames: at least one and at most `frames`. Requires: frames >= 1.
  MutableBytes writable(std::size_t frames);
  // Appends the first `frames` frames of the memory that writable() returned last.
  void append(std::size_t frames);
  // Removes the frames from `index` on. Requires: none of them was released.
  void truncate(std::uint64_t index);

  // A view of frames. Requires: they are appended, not released, and in at most two blocks.
  std::array<Bytes, 2> window(std::uint64_t index, std::size_t frames) const;

  // The frames before `index` are no longer needed. A smaller index than before has no effect.
  void release(std::uint64_t index);

  std::uint64_t block_frames() const { return block_frames_; }  // these are in at most two blocks
  std::uint64_t end() const { return end_; }                    // after the last frame
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
