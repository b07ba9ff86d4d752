// SPDX-License-Identifier: Apache-2.0
#include "recording/files/file_window.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "recording/files/file.h"

namespace millrace::recording {
namespace {

constexpr std::uint64_t page = 4096;  // the disk cannot read a whole number of these

}  // namespace

void FileWindow::reset(int descriptor, std::uint64_t size) {
  descriptor_ = descriptor;
  size_ = size;
  filled_ = 0;
  error_.clear();
  failed_.clear();
  returned_bad_ = false;
}

Bytes FileWindow::read(std::uint64_t offset, std::uint64_t bytes) {
  returned_bad_ = false;
  if (offset >= size_) return {};
  bytes = std::min(bytes, size_ - offset);
  if (offset < begin_ || offset - begin_ > filled_ || bytes > filled_ - (offset - begin_)) {
    const auto wanted =
        std::min<std::uint64_t>(std::max<std::uint64_t>(bytes, ahead), size_ - offset);
    fill(offset, static_cast<std::size_t>(bytes), static_cast<std::size_t>(wanted));
  }
  returned_bad_ = error_ && offset < bad_end_ && offset + bytes > bad_begin_;
  if (returned_bad_) failed_ = error_;
  const std::size_t at = static_cast<std::size_t>(offset - begin_);
  return Bytes(buffer_).subspan(
      at, std::min<std::size_t>(static_cast<std::size_t>(bytes), filled_ - at));
}

// Reads `wanted` bytes, as far as the file goes; of those after the first `least`, only what can be
// read. Bytes that are in the buffer are not read again.
void FileWindow::fill(std::uint64_t offset, std::size_t least, std::size_t wanted) {
  if (buffer_.size() < wanted) buffer_.resize(wanted);
  const bool overlaps = !error_ && offset >= begin_ && offset - begin_ < filled_;
  const std::size_t kept = overlaps ? filled_ - static_cast<std::size_t>(offset - begin_) : 0;
  if (kept > 0) std::memmove(buffer_.data(), buffer_.data() + (filled_ - kept), kept);
  begin_ = offset;
  filled_ = kept;
  error_.clear();
  while (filled_ < wanted) {
    const ssize_t read = ::pread(descriptor_, buffer_.data() + filled_, wanted - filled_,
                                 static_cast<off_t>(offset + filled_));
    if (read > 0) filled_ += static_cast<std::size_t>(read);
    if (read == 0) return;
    if (read > 0 || errno == EINTR) continue;
    if (filled_ >= least) return;
    if (!error_) bad_begin_ = offset + filled_;
    error_ = last_error();
    const auto bad = std::min<std::uint64_t>(page - (offset + filled_) % page, wanted - filled_);
    std::memset(buffer_.data() + filled_, 0, static_cast<std::size_t>(bad));
    filled_ += static_cast<std::size_t>(bad);
    bad_end_ = offset + filled_;
  }
}

}  // namespace millrace::recording
