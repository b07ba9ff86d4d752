// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"

namespace millrace::recording {

// Reads parts of a file into memory, ahead. While another process cuts the end of the file off,
// this is safe, unlike a mapping. The file is not owned. Confined to one thread.
class FileWindow {
 public:
  static constexpr std::size_t ahead = 1 << 20;

  // Sets the size of the file, and forgets all that was read.
  void reset(int descriptor, std::uint64_t size);
  std::uint64_t size() const { return size_; }

  // The bytes [offset, offset + bytes), fewer at the end of the file. Valid until the next call.
  // Throws std::system_error if they cannot be read.
  Bytes read(std::uint64_t offset, std::uint64_t bytes);

 private:
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
  std::vector<std::byte> buffer_;
  std::uint64_t begin_ = 0;  // where the bytes in buffer_ begin
  std::size_t filled_ = 0;
};

}  // namespace millrace::recording
