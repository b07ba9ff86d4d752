// SPDX-License-Identifier: Apache-2.0
#include "input/containers/header_reader.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace millrace {

std::uint64_t HeaderReader::number(std::size_t bytes, bool big_endian) {
  take(bytes);
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i)
    value = value << 8 | buffer_[big_endian ? i : bytes - 1 - i];
  return value;
}

std::string HeaderReader::name() {
  take(4);
  return {buffer_.begin(), buffer_.begin() + 4};
}

// Jumps where the descriptor can, but not over the beginning.
void HeaderReader::skip(std::uint64_t bytes) {
  const std::uint64_t shown =
      std::min(bytes, beginning_.size() - std::min<std::uint64_t>(at_, beginning_.size()));
  take(shown);
  bytes -= shown;
  if (bytes == 0) return;
  if (bytes < std::uint64_t{1} << 62 &&
      ::lseek(descriptor_, static_cast<off_t>(bytes), SEEK_CUR) >= 0) {
    at_ += bytes;
    return;
  }
  for (std::uint64_t part = 0; bytes > 0 && !ended_; bytes -= part) {
    part = std::min<std::uint64_t>(bytes, buffer_.size());
    take(part);
  }
}

void HeaderReader::take(std::size_t bytes) {
  std::fill_n(buffer_.begin(), bytes, std::uint8_t{0});
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t got = ::read(descriptor_, buffer_.data() + done, bytes - done);
    if (got < 0 && errno == EINTR) continue;
    ended_ = got <= 0;
    if (ended_) return;
    for (std::uint64_t i = at_; i < beginning_.size() && i < at_ + static_cast<std::size_t>(got);
         ++i)
      beginning_[i] = std::byte{buffer_[done + i - at_]};
    done += static_cast<std::size_t>(got);
    at_ += static_cast<std::uint64_t>(got);
  }
}

}  // namespace millrace
