// SPDX-License-Identifier: Apache-2.0
#include "transport/net/framed_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "transport/net/local_address.h"

namespace millrace {
namespace {

constexpr std::size_t header_size = sizeof(std::uint32_t);
// The offset of the first message's header: the message after it is then aligned to 8 bytes.
constexpr std::size_t first_header = 8 - header_size;
constexpr std::size_t first_capacity = 64 << 10;
constexpr std::size_t flushed_at_once = std::size_t{1} << 20;
// Larger output memory is freed once all output is sent.
constexpr std::size_t kept_output = std::size_t{1} << 20;

static_assert(std::endian::native == std::endian::little,
              "the length is sent in the byte order of memory");

// The control data of a message with one descriptor.
union Control {
  cmsghdr alignment;
  std::array<char, CMSG_SPACE(sizeof(int))> bytes;
};

void attach(msghdr& message, Control& control, int descriptor) {
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
}

FileDescriptor descriptor_in(msghdr& message) {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(header), sizeof(int));
    return FileDescriptor(descriptor);
  }
  return FileDescriptor();
}

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

// The number of bytes sent; 0 if the socket is full, nullopt if it failed.
std::optional<std::size_t> send_some(int socket, msghdr& message) {
  for (;;) {
    const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return static_cast<std::size_t>(sent);
    if (would_block(errno)) return 0;
    if (errno != EINTR) return std::nullopt;
  }
}

iovec writable(Bytes bytes) {
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};  // sendmsg does not write to it
}

}  // namespace

FramedSocket::FramedSocket(FileDescriptor socket, const FramedLimits& limits)
    : socket_(std::move(socket)),
      limits_(limits),
      incoming_(first_capacity),
      begin_(first_header),
      end_(first_header) {
  const int flags = ::fcntl(socket_.get(), F_GETFL);
  if (flags < 0 || ::fcntl(socket_.get(), F_SETFL, flags | O_NONBLOCK) < 0)
    throw std::system_error(errno, std::generic_category(), "framed socket");
}

FramedSocket FramedSocket::connect(const std::string& path, const FramedLimits& limits) {
  const sockaddr_un address = local_address(path);
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket ||
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw std::system_error(errno, std::generic_category(), path);
  return FramedSocket(std::move(socket), limits);
}

Result<std::optional<Bytes>, FramedError> FramedSocket::try_receive() {
  for (;;) {
    if (end_ - begin_ >= header_size && declared_size() > limits_.max_message)
      return FramedError::too_long;
    if (const auto message = next_message()) return message;
    if (!reserve_space()) return FramedError::no_room;
    const auto got = read_some();
    if (!got) return got.error();
    if (*got == 0) return std::optional<Bytes>();
  }
}

// Requires: a whole header was received.
std::size_t FramedSocket::declared_size() const {
  std::uint32_t size = 0;
  std::memcpy(&size, incoming_.data() + begin_, header_size);
  return size;
}

std::optional<Bytes> FramedSocket::next_message() {
  if (end_ - begin_ < header_size) return std::nullopt;
  const std::size_t size = declared_size();
  if (end_ - begin_ - header_size < size) return std::nullopt;
  const Bytes message(incoming_.data() + begin_ + header_size, size);
  begin_ += header_size + size;
  return message;
}

// Makes space for received bytes; false if the budget is used up. An incomplete message moves to
// the front. Memory doubles as bytes arrive: a header that announces a long message must not
// reserve memory for it. Shared memory is given back once no partial message needs it.
bool FramedSocket::reserve_space() {
  if (begin_ != first_header) {
    std::memmove(incoming_.data() + first_header, incoming_.data() + begin_, end_ - begin_);
    end_ = first_header + (end_ - begin_);
    begin_ = first_header;
  }
  if (shared_ && !is_within_message()) {
    std::vector<std::byte>(first_capacity).swap(incoming_);
    shared_ = {};
  }
  if (end_ < incoming_.size()) return true;
  const std::size_t size =
      std::min(2 * incoming_.size(), first_header + header_size + declared_size());
  if (limits_.incoming && size > limits_.unshared) {
    shared_ = {};
    shared_ = Share(*limits_.incoming, size - limits_.unshared);
    if (!shared_) return false;
  }
  incoming_.resize(size);
  return true;
}

bool FramedSocket::discard_input() {
  const ssize_t got = ::recv(socket_.get(), incoming_.data(), incoming_.size(), MSG_DONTWAIT);
  return got > 0 || (got < 0 && (would_block(errno) || errno == EINTR));
}

Result<std::size_t, FramedError> FramedSocket::read_some() {
  iovec bytes{incoming_.data() + end_, incoming_.size() - end_};
  Control control;
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  // CMSG_SPACE would have space for a second descriptor, which would never be closed.
  message.msg_controllen = limits_.accepts_descriptor ? CMSG_LEN(sizeof(int)) : 0;
  for (;;) {
    const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && would_block(errno)) return 0;
    if (got < 0) return FramedError::lost;
    if (auto descriptor = descriptor_in(message)) {
      if (received_descriptor_) return FramedError::descriptor;
      received_descriptor_ = std::move(descriptor);
    }
    // The kernel has closed the descriptors that did not fit.
    if ((message.msg_flags & MSG_CTRUNC) != 0) return FramedError::descriptor;
    if (got == 0) return end_ == begin_ ? FramedError::closed : FramedError::lost;
    end_ += static_cast<std::size_t>(got);
    return static_cast<std::size_t>(got);
  }
}

FramedSocket::Sent FramedSocket::try_send(Bytes message, int descriptor) {
  const auto size = static_cast<std::uint32_t>(message.size());
  assert(size == message.size());
  const Bytes header = std::as_bytes(std::span(&size, 1));
  const std::size_t waiting = outgoing_.size() - sent_;
  if (waiting > 0 && (descriptor >= 0 || waiting + header_size + size > limits_.max_outgoing))
    return Sent::full;
  std::size_t written = 0;
  if (waiting == 0) {
    std::array<iovec, 2> parts{writable(header), writable(message)};
    Control control;
    msghdr out{};
    out.msg_iov = parts.data();
    out.msg_iovlen = parts.size();
    if (descriptor >= 0) attach(out, control, descriptor);
    const auto sent = send_some(socket_.get(), out);
    if (!sent) return Sent::failed;
    // A descriptor is sent with the first byte or not at all.
    if (*sent == 0 && descriptor >= 0) return Sent::full;
    written = *sent;
  }
  enqueue(header.subspan(std::min(written, header_size)));
  enqueue(message.subspan(written > header_size ? written - header_size : 0));
  return Sent::accepted;
}

void FramedSocket::enqueue(Bytes bytes) {
  // Erases the sent bytes only when they are at least half: O(1) per byte.
  if (2 * sent_ >= outgoing_.size()) {
    outgoing_.erase(outgoing_.begin(), outgoing_.begin() + static_cast<std::ptrdiff_t>(sent_));
    sent_ = 0;
  }
  outgoing_.insert(outgoing_.end(), bytes.begin(), bytes.end());
}

bool FramedSocket::flush() {
  for (std::size_t flushed = 0; has_output() && flushed < flushed_at_once;) {
    const std::size_t most = std::min(unsent(), flushed_at_once - flushed);
    iovec part = writable(Bytes(outgoing_).subspan(sent_, most));
    msghdr out{};
    out.msg_iov = &part;
    out.msg_iovlen = 1;
    const auto sent = send_some(socket_.get(), out);
    if (!sent) return false;
    if (*sent == 0) return true;
    sent_ += *sent;
    flushed += *sent;
  }
  if (has_output()) return true;
  outgoing_.clear();
  if (outgoing_.capacity() > kept_output) std::vector<std::byte>().swap(outgoing_);
  sent_ = 0;
  return true;
}

void FramedSocket::end() { ::shutdown(socket_.get(), SHUT_RDWR); }

void FramedSocket::end_output() { ::shutdown(socket_.get(), SHUT_WR); }

}  // namespace millrace
