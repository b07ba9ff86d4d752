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
// From an attempt to connect again until the stream continues.
constexpr std::chrono::seconds attempt_timeout{5};

// For a session without a connection.
struct Unconnected final : FrameWriter {
  void write(Opcode, std::string_view) override {}
} unconnected;

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

void WebSocketLoadTransport::open(std::uint32_t client, const std::string& name) {
  connections_[client].session = protocol_->session(client, name);
  const RequestedStream request{protocol_->target(name), std::string(protocol_->subprotocol())};
  if (const int error = connect(client, request)) unreachable_.push_back({client, error});
}

int WebSocketLoadTransport::connect(std::uint32_t client, const RequestedStream& request) {
  FileDescriptor socket(
      ::socket(service_.protocol().family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (!socket) return errno;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(socket.get(), service_.data(), static_cast<socklen_t>(service_.size())) != 0 &&
      errno != EINPROGRESS)
    return errno;
  ClientConnection& it = connections_[client];
  ++it.generation;
  auto tls = access_.tls(socket.get());
  it.client.emplace(
      std::move(socket), std::move(tls),
      upgrade_request(access_.url().host_field(), request.target, random_key(scratch_.keys),
                      access_.fields(), request.subprotocols),
      *it.session, scratch_);
  it.watched_to_write = true;
  watch(client, EPOLL_CTL_ADD);
  return 0;
}

bool WebSocketLoadTransport::send(std::uint32_t client, Bytes frames) {
  ClientConnection& it = connections_[client];
  if (!it.client) return false;  // resumed() follows, and stands for writable()
  const bool sent = it.client->send(frames);
  settle(client);
  return sent;
}

void WebSocketLoadTransport::commit(std::uint32_t client, Time due) {
  ClientConnection& it = connections_[client];
  if (!it.client) return it.session->commit(due, unconnected);
  it.client->commit(due);
  settle(client);
}

void WebSocketLoadTransport::end(std::uint32_t client) {
  ClientConnection& it = connections_[client];
  if (!it.client) return it.session->end(unconnected);
  it.client->end();
  settle(client);
}

bool WebSocketLoadTransport::cut(std::uint32_t client, const Cut& cut) {
  ClientConnection& it = connections_[client];
  if (!it.client || !it.session->can_resume()) return false;
  it.client->cut(cut);
  settle(client);
  return true;
}

void WebSocketLoadTransport::disconnect(std::uint32_t client) { drop(client); }

void WebSocketLoadTransport::drop(std::uint32_t client) {
  ++connections_[client].generation;
  connections_[client].client.reset();
}

void WebSocketLoadTransport::settle(std::uint32_t client) {
  if (connections_[client].client->is_lost())
    lose(client, Clock::now());
  else
    update_watch(client);
}

void WebSocketLoadTransport::lose(std::uint32_t client, Time now) {
  drop(client);
  const auto next = connections_[client].session->next_connection(now);
  attempts_.push({next.value_or(now), client, connections_[client].generation, !next});
}

void WebSocketLoadTransport::run_attempts(Time now, ClientSink& sink) {
  while (!attempts_.empty() && attempts_.top().at <= now) {
    const Attempt attempt = attempts_.top();
    const std::uint32_t client = attempt.client;
    attempts_.pop();
    ClientConnection& it = connections_[client];
    if (it.generation != attempt.generation || it.session->is_connected()) continue;
    if (attempt.gives_up) {
      drop(client);
      sink.broken(client, "not resumed in time", now);
    } else if (it.client || connect(client, it.session->resuming_request()) != 0) {
      lose(client, now);
    } else {
      attempts_.push({now + attempt_timeout, client, it.generation});
    }
  }
}

void WebSocketLoadTransport::poll(Time time, ClientSink& sink) {
  refuse_unreachable(sink);
  run_attempts(Clock::now(), sink);
  if (!attempts_.empty()) time = std::min(time, attempts_.top().at);
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
    if (continues || it.client->is_lost())
      settle(client);
    else
      drop(client);
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
