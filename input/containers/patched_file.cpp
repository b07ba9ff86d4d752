// SPDX-License-Identifier: Apache-2.0
#include "input/containers/patched_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace millrace {

PatchedFile::PatchedFile(const std::string& path, std::vector<Patch> patches, const Shown& shown)
    : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)),
      patches_(std::move(patches)),
      hides_end_(shown.hides_end),
      begin_(static_cast<std::int64_t>(shown.begin)),
      end_(static_cast<std::int64_t>(shown.end)),
      at_(begin_) {
  if (end_ == 0)
    end_ = file_ ? std::max<std::int64_t>(begin_, ::lseek(file_.get(), 0, SEEK_END)) : begin_;
}

std::int64_t PatchedFile::seek(std::int64_t offset, int whence) {
  if (whence == SEEK_END && hides_end_) return -1;
  const std::int64_t from = whence == SEEK_CUR ? at_ : whence == SEEK_END ? end_ : begin_;
  if (from + offset < begin_) return -1;
  at_ = from + offset;
  return tell();
}

std::int64_t PatchedFile::read(std::span<std::uint8_t> into) {
  ssize_t got = 0;
  const auto rest = static_cast<std::uint64_t>(std::max<std::int64_t>(0, end_ - at_));
  into = into.first(std::min<std::uint64_t>(into.size(), rest));
  do got = ::pread(file_.get(), into.data(), into.size(), at_);
  while (got < 0 && errno == EINTR);
  if (got <= 0) return 0;
  for (const Patch& patch : patches_)
    for (std::size_t i = 0; i < patch.count; ++i) {
      const std::int64_t at = static_cast<std::int64_t>(patch.at + i) - at_;
      if (at >= 0 && at < got) into[static_cast<std::size_t>(at)] = patch.bytes[i];
    }
  at_ += got;
  return got;
}

}  // namespace millrace
