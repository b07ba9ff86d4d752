// SPDX-License-Identifier: Apache-2.0
#include "transport/websocket/read_ahead.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "transport/websocket/frame_head.h"

namespace millrace {
namespace {

// The memory that a stream may keep, and the longest unread part that is copied back into the
// thread's buffer when more of its message arrives.
constexpr std::size_t kept_unread = 4 * 1024;

}  // namespace

net::execution_context::id ReadBuffer::id;

void ReadBuffer::allow(std::size_t most) { max_read_ = std::clamp(most, kept_unread, size); }

ReadAhead::ReadAhead(net::io_context& context, std::string rest)
    : buffer_(net::use_service<ReadBuffer>(context)),
      own_(std::move(rest)),
      unread_(std::as_writable_bytes(std::span(own_))),
      seen_(unread_) {}

ReadAhead::~ReadAhead() {
  if (buffer_.user_ == this) buffer_.user_ = nullptr;
}

void ReadAhead::poison() {
  assert((std::ranges::fill(seen_.first(seen_.size() - unread_.size()), std::byte{0xdb}), true));
  seen_ = unread_;
}

MutableBytes& ReadAhead::unread() {
  poison();
  return unread_;
}

boost::system::error_code ReadAhead::fill(StreamSocket& socket) {
  poison();
  if (buffer_.user_ != this && unread_.size() > kept_unread) return fill_own(socket);
  if (buffer_.user_ && buffer_.user_ != this) buffer_.user_->move_to_own();
  buffer_.user_ = this;
  const std::size_t before = unread_.size();
  if (before == ReadBuffer::size) return net::error::no_buffer_space;
  if (before > 0) std::memmove(buffer_.bytes_.get(), unread_.data(), before);
  if (own_.capacity() > kept_unread) std::string().swap(own_);
  boost::system::error_code error;
  // Read the rest of a message that has begun at once, even above max_read_: it then needs no
  // memory here.
  const auto head = FrameHead::read({buffer_.bytes_.get(), before});
  const std::size_t rest =
      head ? std::min<std::uint64_t>(head->payload, ReadBuffer::size) + head->size - before : 0;
  const std::size_t space = std::min(ReadBuffer::size - before, std::max(buffer_.max_read_, rest));
  const std::size_t count =
      socket.read_some(net::buffer(buffer_.bytes_.get() + before, space), error);
  seen_ = unread_ = {buffer_.bytes_.get(), before + count};
  return error;
}

// Reads the rest of a long message into own_, after its beginning.
boost::system::error_code ReadAhead::fill_own(StreamSocket& socket) {
  const std::size_t before = unread_.size();
  const auto head = FrameHead::read(unread_);
  const std::size_t all =
      std::min<std::uint64_t>(head->payload, ReadBuffer::size - head->size) + head->size;
  if (before >= all) return net::error::no_buffer_space;
  if (unread_.data() != std::as_bytes(std::span(own_)).data())
    std::memmove(own_.data(), unread_.data(), before);
  own_.resize(all);
  boost::system::error_code error;
  const std::size_t count =
      socket.read_some(net::buffer(own_.data() + before, all - before), error);
  seen_ = unread_ = std::as_writable_bytes(std::span(own_)).first(before + count);
  return error;
}

void ReadAhead::shrink() {
  poison();
  if (!unread_.empty() || own_.capacity() <= kept_unread) return;
  seen_ = unread_ = {};
  std::string().swap(own_);
}

void ReadAhead::move_to_own() {
  poison();
  own_ = text_in(unread_);
  seen_ = unread_ = std::as_writable_bytes(std::span(own_));
}

}  // namespace millrace
