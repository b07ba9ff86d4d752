// SPDX-License-Identifier: Apache-2.0
#include "service/commands/input/pcm_source.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace millrace {

Result<std::optional<Bytes>, std::string> PcmSource::read(std::size_t most) {
  buffer_.resize(most * format_.frame_bytes());
  while (filled_ < buffer_.size() && (left_ > 0 || checks_next_)) {
    if (left_ == 0) {
      const auto checked = check_next();
      if (!checked) return checked.error();
      if (!*checked) return std::optional<Bytes>();
      continue;
    }
    const std::size_t size = std::min<std::uint64_t>(buffer_.size() - filled_, left_);
    const auto got = take(MutableBytes(buffer_).subspan(filled_, size));
    if (!got) return got.error();
    if (!*got) return std::optional<Bytes>();
    filled_ += **got;
    if (**got == 0) missing_ = header_.is_known() && checks_next_ ? left_ : 0;
    if (**got == 0) checks_next_ = false;
    left_ = **got == 0 ? 0 : left_ - **got;
  }
  return std::optional<Bytes>(Bytes(buffer_).first(std::exchange(filled_, 0)));
}

// The bytes that have arrived; 0 at the end; nullopt if none have arrived.
Result<std::optional<std::size_t>, std::string> PcmSource::take(MutableBytes into) {
  if (left_ > 0 && zeros_ > 0) {
    const std::size_t count = std::min<std::uint64_t>(zeros_, into.size());
    std::ranges::fill(into.first(count), std::byte{0});
    zeros_ -= count;
    return std::optional(count);
  }
  if (next_unread_ > 0) {
    const std::size_t count = std::min(next_unread_, into.size());
    std::ranges::copy(Bytes(next_).first(next_count_).last(next_unread_).first(count),
                      into.begin());
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

// Reads more of the bytes after the declared ones, until they show what they are: zeros are audio
// only if something else follows. False: no more have arrived.
Result<bool, std::string> PcmSource::check_next() {
  const auto got = take(MutableBytes(next_).subspan(next_count_));
  if (!got) return got.error();
  if (!*got) return false;
  const bool end = **got == 0;
  next_count_ += **got;
  if (!end && next_count_ < next_.size()) return true;
  std::array<std::uint8_t, behind_bytes> bytes{};
  std::memcpy(bytes.data(), next_.data(), next_.size());
  const auto next = std::span(bytes).first(next_count_);
  const bool zeros = std::ranges::all_of(next, [](std::uint8_t byte) { return byte == 0; });
  has_more_ = !(end && zeros) && (zeros_ > 0 || are_samples(header_, next));
  if (has_more_ && zeros) {
    zeros_ += std::exchange(next_count_, 0);
    return true;
  }
  checks_next_ = false;
  left_ = has_more_ ? all : 0;
  next_unread_ = has_more_ ? next_count_ : 0;
  return true;
}

std::string PcmSource::length_notice() const {
  if (has_more_ && header_.is_known()) return std::string(more_than_header);
  if (missing_ == 0) return {};
  const std::uint64_t frame = format_.frame_bytes();
  return "ends after " + std::to_string((header_.declared - missing_) / frame) + " of the " +
         std::to_string(header_.declared / frame) + " frames in its header";
}

bool PcmSource::is_readable() const {
  pollfd file{file_.get(), POLLIN, 0};
  return ::poll(&file, 1, 0) != 0;
}

}  // namespace millrace
