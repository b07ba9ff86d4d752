// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "commands/console/progress.h"
#include "recording/files/directory.h"

namespace millrace::recordings {

using recording::Directory;
using recording::FileNumber;

// The problems that `verify` finds, printed as a line each:
//
//   0000000003.mcap: at byte 65536: the checksum of chunk 12 is wrong
//   0000000003.mcap: stream 17, position 48000: 3 slices are missing
//
// A stream that `rm` removes meanwhile is no problem. Confined to one thread.
class Problems {
 public:
  // All must outlive it.
  Problems(const Directory& directory, std::ostream& out, Progress& progress)
      : directory_(directory), out_(out), progress_(progress) {}

  void add(std::string line) { waiting_.push_back({{}, std::move(line)}); }
  void add(FileNumber file, const std::string& what);
  void add(FileNumber file, std::uint64_t stream, std::uint64_t position, const std::string& what);

  // Prints the problems that were added since. Call it when a file has been read.
  void print();
  std::uint64_t printed() const { return printed_; }

 private:
  struct Problem {
    std::optional<std::uint64_t> stream;
    std::string line;
  };

  const Directory& directory_;
  std::ostream& out_;
  Progress& progress_;
  std::vector<Problem> waiting_;
  std::uint64_t printed_ = 0;
};

}  // namespace millrace::recordings
