// SPDX-License-Identifier: Apache-2.0
#include "service/commands/input/pcm_source.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "input/containers/sample_bytes.h"

namespace millrace {

Result<std::optional<Bytes>, std::string> PcmSource::read(std::size_t most) {
  buffer_.resize(most * format_.frame_bytes());
  while (filled_ < buffer_.size() && (left_ > 0 || checks_next_)) {
    const bool next = left_ == 0;
    const std::size_t size = std::min<std::uint64_t>(buffer_.size() - filled_, left_);
    const auto got = take(next ? MutableBytes(next_).subspan(next_count_)
                               : MutableBytes(buffer_).subspan(filled_, size));
    if (!got) return got.error();
    if (!*got) return std::optional<Bytes>();
    if (next) {
      check_next(**got);
      continue;
    }
    filled_ += **got;
    if (**got == 0) missing_ = declared_ > 0 && checks_next_ ? left_ : 0;
    if (**got == 0) checks_next_ = false;
    left_ = **got == 0 ? 0 : left_ - **got;
  }
  return std::optional<Bytes>(Bytes(buffer_).first(std::exchange(filled_, 0)));
}

// The bytes that have arrived; 0 at the end; nullopt if none have arrived.
Result<std::optional<std::size_t>, std::string> PcmSource::take(MutableBytes into) {
  if (next_unread_ > 0) {
    const std::size_t count = std::min(next_unread_, into.size());
    std::ranges::copy(Bytes(next_).last(next_unread_).first(count), into.begin());
    next_unread_ -= count;
    return std::optional(count);
  }
  ssize_t got = -1;
  do {
    if (!is_readable()) return std::optional<std::size_t>();
    got = ::read(file_.get(), into.data(), into.size());
  } while (got < 0 && errno == EINTR);
  if (got < 0) return std::string("cannot be read: ") + std::strerror(errno);
  return std::optional(static_cast<std::size_t>(got));
}

// More of the bytes after the declared ones were read; 0: the end.
void PcmSource::check_next(std::size_t got) {
  next_count_ += got;
  if (got > 0 && next_count_ < next_.size()) return;
  checks_next_ = false;
  if (got == 0) return;
  std::array<std::uint8_t, 8> bytes{};
  std::memcpy(bytes.data(), next_.data(), next_.size());
  if (is_behind_samples(bytes, false)) return;
  left_ = all;
  next_unread_ = next_.size();
}

std::string PcmSource::shortfall() const {
  if (missing_ == 0) return {};
  const std::uint64_t frame = format_.frame_bytes();
  return "ends after " + std::to_string((declared_ - missing_) / frame) + " of the " +
         std::to_string(declared_ / frame) + " frames in its header";
}

bool PcmSource::is_readable() const {
  pollfd file{file_.get(), POLLIN, 0};
  return ::poll(&file, 1, 0) != 0;
}

}  // namespace millrace
