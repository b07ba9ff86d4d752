// SPDX-License-Identifier: Apache-2.0
#include "recording/files/file_window.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace millrace::recording {
namespace {

// Fills `into`, as far as the file goes.
std::size_t read_at(int descriptor, std::uint64_t offset, MutableBytes into) {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t read = ::pread(descriptor, into.data() + done, into.size() - done,
                                 static_cast<off_t>(offset + done));
    if (read > 0) done += static_cast<std::size_t>(read);
    if (read == 0) break;
    if (read < 0 && errno != EINTR) throw std::system_error(errno, std::generic_category(), "read");
  }
  return done;
}

}  // namespace

void FileWindow::reset(int descriptor, std::uint64_t size) {
  descriptor_ = descriptor;
  size_ = size;
  filled_ = 0;
}

Bytes FileWindow::read(std::uint64_t offset, std::uint64_t bytes) {
  if (offset >= size_) return {};
  bytes = std::min(bytes, size_ - offset);
  if (offset < begin_ || offset - begin_ > filled_ || bytes > filled_ - (offset - begin_)) {
    const auto wanted = static_cast<std::size_t>(
        std::min<std::uint64_t>(std::max<std::uint64_t>(bytes, ahead), size_ - offset));
    if (buffer_.size() < wanted) buffer_.resize(wanted);
    filled_ = 0;
    filled_ = read_at(descriptor_, offset, MutableBytes(buffer_).first(wanted));
    begin_ = offset;
  }
  const std::size_t at = static_cast<std::size_t>(offset - begin_);
  return Bytes(buffer_).subspan(
      at, std::min<std::size_t>(static_cast<std::size_t>(bytes), filled_ - at));
}

}  // namespace millrace::recording
