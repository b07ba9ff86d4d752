// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "recording/files/directory.h"
#include "tests/recording/crash_loop/life.h"
#include "tests/recording/slice_plan.h"

namespace millrace::recording {

// The content that the recording files of a directory may have after the processes that wrote them
// were killed. Functions throw std::runtime_error, with a line, if a file has other content.
class Expectation {
 public:
  explicit Expectation(const Directory& directory) : directory_(directory) {}

  // A process with this seed has ended.
  void add(std::uint64_t seed, const Progress& progress);

  // Reads a file as it is. Returns the number of slices.
  std::size_t check(FileNumber number);
  void check_all();

  // Recovers a file. Compares the file before and after.
  struct Repair {
    std::uint64_t cut_bytes = 0, lost_bytes = 0;
    double seconds = 0;
  };
  Repair recover_and_check(FileNumber number);

  std::uint64_t committed() const { return committed_; }

 private:
  struct ExpectedFile {
    std::vector<PlannedSlice> slices{};  // those that may be in the file, in its order
    std::size_t committed = 0;           // the first ones must be in the file
    std::uint64_t removing = 0;
    bool removed = false;
  };

  const Directory& directory_;
  std::map<FileNumber, ExpectedFile> files_;
  std::uint64_t committed_ = 0, last_stream_ = 0;
};

}  // namespace millrace::recording
