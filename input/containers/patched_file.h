// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

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

  // `hidden_end`: if not 0, the file ends at this offset, and seek() cannot find the end, so that
  // no length is estimated from the size.
  PatchedFile(const std::string& path, const Patch& patch, std::uint64_t hidden_end = 0);

  // False: the file cannot be opened.
  explicit operator bool() const { return static_cast<bool>(file_); }
  std::int64_t size() const { return size_; }
  std::int64_t tell() const { return at_; }
  // As lseek(). -1: it fails.
  std::int64_t seek(std::int64_t offset, int whence);
  // As read(). 0: the end, or an error.
  std::int64_t read(std::span<std::uint8_t> into);

 private:
  FileDescriptor file_;
  Patch patch_;
  bool hides_end_;  // at size_
  std::int64_t size_ = 0, at_ = 0;
};

}  // namespace millrace
