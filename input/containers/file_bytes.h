// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace millrace {

// Reads bytes of a file by their offset, a block at a time. Confined to one thread.
class FileBytes {
 public:
  // `file` must outlive it.
  explicit FileBytes(int file) : file_(file), block_(1 << 16) {}

  // The bytes [at, at + count), fewer at the end of the file. Valid until the next call. Requires:
  // at most 64 KiB.
  std::string_view read(std::uint64_t at, std::size_t count) {
    if (at < begin_ || at + count > begin_ + size_) fetch(at);
    const std::size_t first = std::min<std::uint64_t>(at - begin_, size_);
    return {block_.data() + first, std::min(count, size_ - first)};
  }

 private:
  void fetch(std::uint64_t at) {
    const ssize_t got = ::pread(file_, block_.data(), block_.size(), static_cast<off_t>(at));
    begin_ = at;
    size_ = static_cast<std::size_t>(std::max<ssize_t>(got, 0));
  }

  const int file_;
  std::vector<char> block_;
  std::uint64_t begin_ = 0;
  std::size_t size_ = 0;
};

}  // namespace millrace
