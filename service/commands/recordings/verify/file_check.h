// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "recording/files/segment_file.h"
#include "service/commands/recordings/verify/problems.h"
#include "service/commands/recordings/verify/slice_order.h"

namespace millrace::recordings {

// Reads every byte of one segment file: the checksums of its chunks, of its data section and of its
// summary, each slice, and that the summary lists the streams that are in the chunks. Confined to
// one thread.
class FileCheck {
 public:
  // All must outlive it.
  FileCheck(recording::SegmentFile& file, SliceOrder& order, Problems& problems);

  // Checks the file. Calls `read` with the number of bytes after each chunk.
  void run(const std::function<void(std::uint64_t)>& read);

 private:
  void check_chunk(std::size_t chunk);
  void check_slice(const recording::SliceMessage& message);
  void count(std::uint16_t channel, std::uint32_t number, const recording::Slice& slice);
  void check_parts();
  void check_sums();

  recording::SegmentFile& file_;
  SliceOrder& order_;
  Problems& problems_;
  const FileNumber number_;
  recording::SliceDecoder decoder_;
  std::map<std::uint64_t, recording::StreamPart> parts_;  // found in the chunks
  std::uint64_t summed_ = 0;                              // bytes in data_sum_
  std::uint32_t data_sum_ = 0;
  bool damaged_ = false;
};

}  // namespace millrace::recordings
