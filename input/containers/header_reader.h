// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "input/containers/container_name.h"

namespace millrace {

// Reads the header of a file from front to back, so that a pipe works too. Bytes after the end
// count as 0. Blocks until the bytes have arrived. Confined to one thread.
class HeaderReader {
 public:
  // `descriptor` must outlive it.
  explicit HeaderReader(int descriptor) : descriptor_(descriptor) {}

  // The next number of `bytes` bytes, at most 8.
  std::uint64_t number(std::size_t bytes, bool big_endian = false);
  // The next four bytes.
  std::string name();
  void skip(std::uint64_t bytes);

  // Bytes that were read or skipped.
  std::uint64_t at() const { return at_; }
  bool ended() const { return ended_; }
  // The first bytes, as many as container_name() needs; those that were not read are 0.
  Bytes beginning() const { return beginning_; }

 private:
  // Reads these bytes into buffer_; those after the end are 0.
  void take(std::size_t bytes);

  const int descriptor_;
  std::uint64_t at_ = 0;
  bool ended_ = false;
  std::array<std::byte, longest_signature> beginning_{};
  std::array<std::uint8_t, 4096> buffer_{};
};

}  // namespace millrace
