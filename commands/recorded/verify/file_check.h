// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "commands/recorded/verify/problems.h"
#include "commands/recorded/verify/slice_order.h"
#include "recording/files/recording_file.h"
#include "recording/format/part_table.h"

namespace millrace::recordings {

// Reads every byte of one recording file: all checksums, each slice, and that the summary lists the
// streams that are in the chunks. Confined to one thread.
class FileCheck {
 public:
  // All must outlive it.
  FileCheck(recording::RecordingFile& file, SliceOrder& order, Problems& problems)
      : file_(file), order_(order), problems_(problems), number_(file.head().file) {}

  // Checks the file. Calls `read` with the place in the file after each chunk.
  void run(const std::function<void(std::uint64_t)>& read);

 private:
  void check_slice(const recording::SliceMessage& message);
  void check_parts();
  bool check_left_out(const std::vector<recording::StreamPart>& found,
                      const std::vector<recording::StreamPart>& listed);

  recording::RecordingFile& file_;
  SliceOrder& order_;
  Problems& problems_;
  const FileNumber number_;
  recording::SliceDecoder decoder_;
  recording::PartTable parts_;  // found in the chunks
};

}  // namespace millrace::recordings
