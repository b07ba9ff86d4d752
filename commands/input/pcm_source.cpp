// SPDX-License-Identifier: Apache-2.0
#include "commands/input/pcm_source.h"

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

// The next bytes that have arrived, those behind the declared ones too; 0 at the end; nullopt if
// none have arrived.
Result<std::optional<std::size_t>, std::string> PcmSource::take(MutableBytes into) {
  if (zeros_unread_ > 0) {
    const std::size_t count = std::min<std::uint64_t>(zeros_unread_, into.size());
    std::ranges::fill(into.first(count), std::byte{0});
    zeros_unread_ -= count;
    return std::optional(count);
  }
  if (others_unread_ > 0) {
    const std::size_t count = std::min(others_unread_, into.size());
    std::ranges::copy(std::as_bytes(behind_.others()).last(others_unread_).first(count),
                      into.begin());
    others_unread_ -= count;
    return std::optional(count);
  }
  return read_into(into);
}

// As take(), from the descriptor.
Result<std::optional<std::size_t>, std::string> PcmSource::read_into(MutableBytes into) {
  ssize_t got = -1;
  do {
    if (!is_readable()) return std::optional<std::size_t>();
    got = ::read(file_.get(), into.data(), into.size());
  } while (got < 0 && errno == EINTR);
  if (got < 0) return std::string("cannot be read: ") + std::strerror(errno);
  return std::optional(static_cast<std::size_t>(got));
}

// Reads more of the bytes behind the declared ones, until they show what they are. False: no more
// have arrived.
Result<bool, std::string> PcmSource::check_next() {
  const auto got = read_into(std::as_writable_bytes(behind_.room()));
  if (!got) return got.error();
  if (!*got) return false;
  behind_.add(**got);
  if (!behind_.decided()) return true;
  checks_next_ = false;
  if (!behind_.are_samples()) return true;
  left_ = all;
  zeros_unread_ = behind_.zeros();
  others_unread_ = behind_.others().size();
  return true;
}

std::string PcmSource::length_notice() const {
  if (behind_.are_samples() && header_.is_known()) return std::string(more_than_header);
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
