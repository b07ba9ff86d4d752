// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/file_descriptor.h"

namespace millrace {

// A file for a library that believes its header: some bytes of the header are replaced. Confined to
// one thread.
class PatchedFile {
 public:
  struct Patch {
    std::uint64_t at = 0;  // offset in the file
    std::array<std::uint8_t, 8> bytes{};
    std::size_t count = 0;  // number of these bytes
  };

  // The part of a file that is shown, by offsets in the file, as those of patches.
  struct Shown {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;   // 0: that of the file
    bool hides_end = false;  // seek() cannot find the end: no length is estimated from the size
  };

  PatchedFile(const std::string& path, std::vector<Patch> patches, const Shown& shown);

  // False: the file cannot be opened.
  explicit operator bool() const { return static_cast<bool>(file_); }
  std::int64_t size() const { return end_ - begin_; }
  std::int64_t tell() const { return at_ - begin_; }
  // As lseek(). -1: it fails.
  std::int64_t seek(std::int64_t offset, int whence);
  // As read(). 0: the end, or an error.
  std::int64_t read(std::span<std::uint8_t> into);

 private:
  FileDescriptor file_;
  std::vector<Patch> patches_;
  const bool hides_end_;
  std::int64_t begin_, end_, at_;  // offsets in the file
};

}  // namespace millrace
