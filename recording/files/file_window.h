// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <system_error>
#include <vector>

#include "base/bytes.h"

namespace millrace::recording {

// Reads parts of a file into memory, ahead. If another process cuts the end of the file off, or the
// disk cannot read a part of the file, this is safe, unlike a mapping. The file is not owned.
// Confined to one thread.
class FileWindow {
 public:
  static constexpr std::size_t ahead = 1 << 20;

  // Sets the size of the file, and forgets all that was read.
  void reset(int descriptor, std::uint64_t size);
  std::uint64_t size() const { return size_; }

  // The bytes [offset, offset + bytes), fewer at the end of the file. Valid until the next call.
  // Zeros stand for bytes that cannot be read: no checksum accepts them in place of others.
  Bytes read(std::uint64_t offset, std::uint64_t bytes);
  // Why not all bytes that read() returned last could be read. No error: all could.
  std::error_code unreadable() const { return returned_bad_ ? error_ : std::error_code(); }
  // Why a byte that read() has returned since reset() could not be read. No error: all could.
  std::error_code failed() const { return failed_; }

 private:
  void fill(std::uint64_t offset, std::size_t least, std::size_t wanted);

  int descriptor_ = -1;
  std::uint64_t size_ = 0;
  std::vector<std::byte> buffer_;
  std::uint64_t begin_ = 0;  // where the bytes in buffer_ begin
  std::size_t filled_ = 0;
  std::error_code error_;                      // why zeros are in buffer_
  std::uint64_t bad_begin_ = 0, bad_end_ = 0;  // they are between these places of the file
  bool returned_bad_ = false;
  std::error_code failed_;
};

}  // namespace millrace::recording
