// SPDX-License-Identifier: Apache-2.0
#include "transport/zeromq/zmtp_output.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <utility>

#include "transport/zeromq/zmtp_head.h"

namespace millrace {
namespace {

using namespace zmtp;

constexpr std::size_t longest_short = 255;

// Written in one system call.
constexpr std::size_t frames_at_once = 64;

// Memory of a frame in addition to its bytes, approximately.
constexpr std::size_t overhead = 128;

using Head = std::array<std::byte, long_head>;

Head head_of(std::uint8_t flags, std::uint64_t size) {
  Head head{std::byte{flags}};
  if ((flags & is_long) == 0) {
    head[1] = static_cast<std::byte>(size);
  } else {
    for (std::size_t i = 0; i < 8; ++i) head[1 + i] = static_cast<std::byte>(size >> (56 - 8 * i));
  }
  return head;
}

// `bytes` without the first `offset`, from which the skipped bytes are subtracted.
iovec part_of(Bytes bytes, std::size_t& offset) {
  const std::size_t skipped = std::min(offset, bytes.size());
  offset -= skipped;
  const Bytes rest = bytes.subspan(skipped);
  return {const_cast<std::byte*>(rest.data()), rest.size()};  // sendmsg does not write to it
}

}  // namespace

void ZmtpOutput::add_raw(std::string_view bytes) {
  add(0, 0, ZeromqMessage::copy_of(bytes_in(bytes)));
}

void ZmtpOutput::add_command(std::string_view body) {
  const bool longer = body.size() > longest_short;
  add(is_command | (longer ? is_long : 0), longer ? long_head : short_head,
      ZeromqMessage::copy_of(bytes_in(body)));
}

void ZmtpOutput::add_message(ZeromqMessage message) {
  const bool longer = message.bytes().size() > longest_short;
  add(longer ? is_long : 0, longer ? long_head : short_head, std::move(message));
  end_of_messages_ = added_;
}

void ZmtpOutput::add(std::uint8_t flags, std::size_t head, ZeromqMessage body) {
  const std::size_t size = body.bytes().size();
  frames_.push_back(Frame{flags, static_cast<std::uint8_t>(head), std::move(body)});
  weight_ += size + overhead;
  added_ += head + size;
}

ZmtpOutput::Written ZmtpOutput::write(int socket) {
  while (!frames_.empty()) {
    std::array<Head, frames_at_once> heads;
    std::array<iovec, 2 * frames_at_once> parts;
    const std::size_t count = std::min(frames_.size(), frames_at_once);
    std::size_t offset = offset_;
    for (std::size_t i = 0; i < count; ++i) {
      const Frame& frame = frames_[i];
      heads[i] = head_of(frame.flags, frame.body.bytes().size());
      parts[2 * i] = part_of(Bytes(heads[i]).first(frame.head), offset);
      parts[2 * i + 1] = part_of(frame.body.bytes(), offset);
    }
    msghdr out{};
    out.msg_iov = parts.data();
    out.msg_iovlen = 2 * count;
    const ssize_t sent = ::sendmsg(socket, &out, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno == EAGAIN || errno == EWOULDBLOCK ? Written::some : Written::failed;
    written(static_cast<std::size_t>(sent));
  }
  return Written::all;
}

void ZmtpOutput::written(std::size_t bytes) {
  offset_ += bytes;
  while (!frames_.empty() && offset_ >= frames_.front().size()) {
    offset_ -= frames_.front().size();
    weight_ -= frames_.front().body.bytes().size() + overhead;
    (void)frames_.pop_front();
  }
}

void ZmtpOutput::clear() {
  frames_.clear();
  offset_ = weight_ = 0;
}

}  // namespace millrace
