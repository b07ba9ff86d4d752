// SPDX-License-Identifier: Apache-2.0
#include "input/containers/patched_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace millrace {

PatchedFile::PatchedFile(const std::string& path, const Patch& patch, std::uint64_t hidden_end)
    : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)),
      patch_(patch),
      hides_end_(hidden_end > 0),
      size_(static_cast<std::int64_t>(hidden_end)) {
  if (!hides_end_) size_ = file_ ? std::max<std::int64_t>(0, ::lseek(file_.get(), 0, SEEK_END)) : 0;
}

std::int64_t PatchedFile::seek(std::int64_t offset, int whence) {
  if (whence == SEEK_END && hides_end_) return -1;
  const std::int64_t from = whence == SEEK_CUR ? at_ : whence == SEEK_END ? size_ : 0;
  if (from + offset < 0) return -1;
  return at_ = from + offset;
}

std::int64_t PatchedFile::read(std::span<std::uint8_t> into) {
  ssize_t got = 0;
  if (hides_end_) {
    const auto rest = static_cast<std::uint64_t>(std::max<std::int64_t>(0, size_ - at_));
    into = into.first(std::min<std::uint64_t>(into.size(), rest));
  }
  do got = ::pread(file_.get(), into.data(), into.size(), at_);
  while (got < 0 && errno == EINTR);
  if (got <= 0) return 0;
  for (std::size_t i = 0; i < patch_.count; ++i) {
    const std::int64_t at = static_cast<std::int64_t>(patch_.at + i) - at_;
    if (at >= 0 && at < got) into[static_cast<std::size_t>(at)] = patch_.bytes[i];
  }
  at_ += got;
  return got;
}

}  // namespace millrace
