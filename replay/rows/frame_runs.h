// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/ring.h"

namespace millrace {

// The frames of one recorded stream that later rows may show, where they lie in the mapped files. A
// frame is named by its index, the number of frames appended before it, so gaps do not count.
// Frames that follow each other in memory are one run. Confined to one thread.
class FrameRuns {
 public:
  explicit FrameRuns(std::size_t frame_bytes) : frame_bytes_(frame_bytes) {}

  // Appends frames, which stay where they are.
  void append(Bytes frames);
  // The index after the last frame.
  std::uint64_t end() const { return end_; }

  // The frames [begin, begin + count). They are in place if they lie in one or two runs. Otherwise
  // they are copied to `copy`, which is empty if they are in place. Requires: they were appended
  // and not released.
  std::array<Bytes, 2> window(std::uint64_t begin, std::uint64_t count,
                              std::vector<std::byte>& copy) const;
  // Forgets the runs whose frames are all before `index`. Views of them stay valid.
  void release(std::uint64_t index);

 private:
  struct Run {
    std::uint64_t begin = 0;
    Bytes bytes{};
  };
  std::uint64_t end_of(const Run& run) const { return run.begin + run.bytes.size() / frame_bytes_; }

  const std::size_t frame_bytes_;
  Ring<Run> runs_;
  std::uint64_t end_ = 0;
};

}  // namespace millrace
