// SPDX-License-Identifier: Apache-2.0
#include "bench/bare_epoll.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>

#include "schemas/server_messages.h"
#include "transport/websocket/frame_head.h"
#include "transport/websocket/handshake.h"

namespace millrace::bench {

namespace {

constexpr std::size_t buffer_bytes = 256 << 10;
constexpr unsigned text_frame = 1, binary_frame = 2, close_frame = 8, ping_frame = 9,
                   pong_frame = 10;

int checked(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

FileDescriptor listen_on(std::uint16_t port) {
  FileDescriptor socket(
      checked(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), "socket"));
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  checked(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
          "bind");
  checked(::listen(socket.get(), SOMAXCONN), "listen");
  return socket;
}

FileDescriptor termination() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  return FileDescriptor(checked(::signalfd(-1, &signals, SFD_CLOEXEC), "signalfd"));
}

std::string_view first(const std::vector<std::string_view>& values) {
  return values.empty() ? std::string_view() : values.front();
}

}  // namespace

BareEpoll::BareEpoll(std::uint16_t port, bool answers, BareArrivals& arrivals)
    : answers_(answers),
      arrivals_(arrivals),
      epoll_(checked(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      listener_(listen_on(port)),
      terminated_(termination()),
      buffer_(buffer_bytes) {
  watch(listener_.get());
  watch(terminated_.get());
}

std::uint16_t BareEpoll::port() const {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  checked(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size),
          "getsockname");
  return ntohs(address.sin_port);
}

void BareEpoll::run() {
  std::array<epoll_event, 512> events;
  for (;;) {
    const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), -1);
    for (int i = 0; i < count; ++i) {
      const int ready = events[static_cast<std::size_t>(i)].data.fd;
      if (ready == terminated_.get()) return;
      auto& client = clients_[static_cast<std::size_t>(ready)];
      if (ready == listener_.get())
        accept_all();
      else if (!read(*client))
        client.reset();
    }
  }
}

void BareEpoll::watch(int descriptor) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = descriptor}};
  checked(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event), "epoll_ctl");
  const auto index = static_cast<std::size_t>(descriptor);
  if (clients_.size() <= index) clients_.resize(index + 1);
}

void BareEpoll::accept_all() {
  for (;;) {
    const int peer = ::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (peer < 0) return;
    const int on = 1;
    ::setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    FileDescriptor socket(peer);
    watch(peer);
    clients_[static_cast<std::size_t>(peer)].emplace(std::move(socket));
  }
}

bool BareEpoll::read(Client& client) {
  if (client.upgrade) return handshake(client);
  const MutableBytes free = MutableBytes(buffer_).subspan(client.partial_frame.size());
  const auto size = ::recv(client.socket.get(), free.data(), free.size(), 0);
  if (size <= 0) return size < 0 && errno == EAGAIN;
  std::ranges::copy(client.partial_frame, buffer_.begin());
  auto here =
      MutableBytes(buffer_).first(client.partial_frame.size() + static_cast<std::size_t>(size));
  for (;;) {
    const auto head = FrameHead::read(here);
    if (!head || here.size() - head->size < head->payload) break;
    const MutableBytes payload = here.subspan(head->size, head->payload);
    mask(payload, head->key);
    if (!handle(client, head->first & 15u, payload)) return false;
    here = here.subspan(head->size + payload.size());
  }
  client.partial_frame.assign(here.begin(), here.end());
  return true;
}

// The client sends nothing after the upgrade before it has the answer.
bool BareEpoll::handshake(Client& client) {
  const auto space = client.upgrade->space();
  const auto size = ::recv(client.socket.get(), space.data(), space.size(), 0);
  if (size <= 0) return size < 0 && errno == EAGAIN;
  const auto query = client.upgrade->add(static_cast<std::size_t>(size));
  if (!query) return true;
  if (!query->has_value()) return false;
  const std::string answer =
      answer_to(Upgrade{.key = std::string(first((*query)->all("Sec-WebSocket-Key"))),
                        .subprotocol = first((*query)->all("Sec-WebSocket-Protocol"))});
  client.upgrade.reset();
  text_.clear();
  append_ready(text_, {.stream = "s", .pipeline = "default"});
  return ::send(client.socket.get(), answer.data(), answer.size(), MSG_NOSIGNAL) ==
             static_cast<ssize_t>(answer.size()) &&
         send(client, text_frame, text_);
}

bool BareEpoll::handle(Client& client, unsigned opcode, Bytes payload) {
  switch (opcode) {
    case binary_frame:
      arrivals_.add(payload);
      ++client.messages;
      client.bytes += payload.size();
      return !answers_ || answer(client, payload.size());
    case text_frame:  // always the command `end`
      text_.clear();
      append_closed(text_, client.bytes / 2, client.messages);
      return send(client, text_frame, text_) && send(client, close_frame, "\x03\xe8");
    case ping_frame:
      return send(client, pong_frame,
                  {reinterpret_cast<const char*>(payload.data()), payload.size()});
    default: return opcode != close_frame;
  }
}

// Uses the service's own function, which is fast.
bool BareEpoll::answer(Client& client, std::size_t size) {
  text_.clear();
  const std::uint64_t end = client.bytes / 2;
  append_result(text_, {.seq = client.messages - 1, .begin = end - size / 2, .end = end},
                {Answer::Kind::json, "null"});
  return send(client, text_frame, text_);
}

bool BareEpoll::send(Client& client, unsigned opcode, std::string_view payload) {
  head_.clear();
  FrameHead::append(head_, static_cast<std::uint8_t>(0x80 | opcode), payload.size());
  std::array<iovec, 2> parts{
      {{head_.data(), head_.size()}, {const_cast<char*>(payload.data()), payload.size()}}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  return ::sendmsg(client.socket.get(), &message, MSG_NOSIGNAL) ==
         static_cast<ssize_t>(head_.size() + payload.size());
}

}  // namespace millrace::bench
