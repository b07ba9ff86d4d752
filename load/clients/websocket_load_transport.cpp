// SPDX-License-Identifier: Apache-2.0
#include "load/clients/websocket_load_transport.h"

#include <netinet/tcp.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "load/clients/service_endpoint.h"
#include "transport/websocket/handshake.h"

namespace millrace::load {

namespace {

constexpr int events_at_once = 256;

timespec until(Time time) {
  const Duration left = std::max(Duration::zero(), Duration(time - Clock::now()));
  return {.tv_sec = left / std::chrono::seconds(1),
          .tv_nsec = left % std::chrono::seconds(1) / std::chrono::nanoseconds(1)};
}

}  // namespace

WebSocketLoadTransport::WebSocketLoadTransport(CheckedAccess access,
                                               std::unique_ptr<ClientProtocol> protocol,
                                               std::uint32_t clients)
    : access_(std::move(access)),
      protocol_(std::move(protocol)),
      service_(find_endpoint(access_.url())),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      connections_(clients) {
  if (!epoll_) throw std::runtime_error(std::strerror(errno));
}

std::string WebSocketLoadTransport::upgrade(const std::string& name) {
  return upgrade_request(access_.url().host_field(), protocol_->target(name),
                         random_key(scratch_.keys), access_.fields(), protocol_->subprotocol());
}

void WebSocketLoadTransport::open(std::uint32_t client, const std::string& name) {
  FileDescriptor socket(
      ::socket(service_.protocol().family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (!socket) return unreachable_.push_back({client, errno});
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(socket.get(), service_.data(), static_cast<socklen_t>(service_.size())) != 0 &&
      errno != EINPROGRESS)
    return unreachable_.push_back({client, errno});
  ClientConnection& it = connections_[client];
  ++it.generation;
  auto tls = access_.tls(socket.get());
  it.client.emplace(std::move(socket), std::move(tls), upgrade(name),
                    protocol_->session(client, name), scratch_);
  it.watched_to_write = true;
  watch(client, EPOLL_CTL_ADD);
}

bool WebSocketLoadTransport::send(std::uint32_t client, Bytes frames) {
  const bool sent = connections_[client].client->send(frames);
  update_watch(client);
  return sent;
}

void WebSocketLoadTransport::commit(std::uint32_t client, Time due) {
  connections_[client].client->commit(due);
  update_watch(client);
}

void WebSocketLoadTransport::end(std::uint32_t client) {
  connections_[client].client->end();
  update_watch(client);
}

void WebSocketLoadTransport::disconnect(std::uint32_t client) {
  connections_[client].client.reset();
}

void WebSocketLoadTransport::poll(Time time, ClientSink& sink) {
  refuse_unreachable(sink);
  std::array<epoll_event, events_at_once> events;
  const timespec left = until(time);
  const int count = ::epoll_pwait2(epoll_.get(), events.data(), events_at_once, &left, nullptr);
  if (count < 0 && errno != EINTR) throw std::runtime_error(std::strerror(errno));
  for (int i = 0; i < count; ++i) {
    const auto client = static_cast<std::uint32_t>(events[i].data.u64);
    ClientConnection& it = connections_[client];
    if (!it.client || it.generation != events[i].data.u64 >> 32) continue;
    const bool failed = events[i].events & (EPOLLERR | EPOLLHUP);
    const bool continues = it.client->turn(failed || (events[i].events & EPOLLIN),
                                           failed || (events[i].events & EPOLLOUT), sink);
    if (continues)
      update_watch(client);
    else
      it.client.reset();
  }
}

void WebSocketLoadTransport::refuse_unreachable(ClientSink& sink) {
  for (const auto& [client, error] : std::exchange(unreachable_, {}))
    sink.refused(client, std::strerror(error), Clock::now());
}

void WebSocketLoadTransport::update_watch(std::uint32_t client) {
  ClientConnection& it = connections_[client];
  if (it.watched_to_write == it.client->waits_to_write()) return;
  it.watched_to_write = !it.watched_to_write;
  watch(client, EPOLL_CTL_MOD);
}

void WebSocketLoadTransport::watch(std::uint32_t client, int operation) {
  const ClientConnection& it = connections_[client];
  epoll_event event{};
  event.events = it.watched_to_write ? EPOLLIN | EPOLLOUT : EPOLLIN;
  event.data.u64 = std::uint64_t{it.generation} << 32 | client;
  ::epoll_ctl(epoll_.get(), operation, it.client->socket(), &event);
}

}  // namespace millrace::load
