// SPDX-License-Identifier: Apache-2.0
#include "service/commands/input/pcm_source.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace millrace {

Result<std::optional<Bytes>, std::string> PcmSource::read(std::size_t most) {
  buffer_.resize(most * format_.frame_bytes());
  while (filled_ < buffer_.size() && left_ > 0) {
    if (!is_readable()) return std::optional<Bytes>();
    const std::size_t size = std::min<std::uint64_t>(buffer_.size() - filled_, left_);
    const ssize_t got = ::read(file_.get(), buffer_.data() + filled_, size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::string("cannot be read: ") + std::strerror(errno);
    filled_ += static_cast<std::size_t>(got);
    left_ = got == 0 ? 0 : left_ - static_cast<std::uint64_t>(got);
  }
  return std::optional<Bytes>(Bytes(buffer_).first(std::exchange(filled_, 0)));
}

bool PcmSource::is_readable() const {
  pollfd file{file_.get(), POLLIN, 0};
  return ::poll(&file, 1, 0) != 0;
}

}  // namespace millrace
