// SPDX-License-Identifier: Apache-2.0
#include "load/clients/websocket_door.h"

#include <netinet/tcp.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "load/clients/service_place.h"
#include "transport/websocket/handshake.h"
#include "transport/websocket/stream_target.h"

namespace millrace::load {

namespace {

constexpr int events_at_once = 256;

timespec until(Time time) {
  const Duration left = std::max(Duration::zero(), Duration(time - Clock::now()));
  return {.tv_sec = left / std::chrono::seconds(1),
          .tv_nsec = left % std::chrono::seconds(1) / std::chrono::nanoseconds(1)};
}

}  // namespace

WebSocketDoor::WebSocketDoor(const ServiceUrl& service, StreamRequest request, std::uint32_t places)
    : host_(service.host_field()),
      request_(std::move(request)),
      service_(find_place(service)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      places_(places) {
  if (!epoll_) throw std::runtime_error(std::strerror(errno));
}

std::string WebSocketDoor::upgrade(const std::string& name) {
  request_.id = name;
  return upgrade_request(host_, stream_target(request_), random_key(scratch_.keys));
}

void WebSocketDoor::open(std::uint32_t place, const std::string& name) {
  FileDescriptor socket(
      ::socket(service_.protocol().family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (!socket) return unreachable_.push_back({place, errno});
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(socket.get(), service_.data(), static_cast<socklen_t>(service_.size())) != 0 &&
      errno != EINPROGRESS)
    return unreachable_.push_back({place, errno});
  Place& it = places_[place];
  ++it.life;
  it.client.emplace(std::move(socket), upgrade(name), place, scratch_);
  it.watched_to_write = true;
  watch(place, EPOLL_CTL_ADD);
}

bool WebSocketDoor::send(std::uint32_t place, Bytes frames) {
  const bool sent = places_[place].client->send(frames);
  watch_as_wanted(place);
  return sent;
}

void WebSocketDoor::end(std::uint32_t place) {
  places_[place].client->end();
  watch_as_wanted(place);
}

void WebSocketDoor::vanish(std::uint32_t place) { places_[place].client.reset(); }

void WebSocketDoor::poll(Time time, ClientSink& sink) {
  refuse_unreachable(sink);
  std::array<epoll_event, events_at_once> events;
  const timespec left = until(time);
  const int count = ::epoll_pwait2(epoll_.get(), events.data(), events_at_once, &left, nullptr);
  if (count < 0 && errno != EINTR) throw std::runtime_error(std::strerror(errno));
  for (int i = 0; i < count; ++i) {
    const auto place = static_cast<std::uint32_t>(events[i].data.u64);
    Place& it = places_[place];
    if (!it.client || it.life != events[i].data.u64 >> 32) continue;
    const bool failed = events[i].events & (EPOLLERR | EPOLLHUP);
    const bool goes_on = it.client->turn(failed || (events[i].events & EPOLLIN),
                                         failed || (events[i].events & EPOLLOUT), sink);
    if (goes_on)
      watch_as_wanted(place);
    else
      it.client.reset();
  }
}

void WebSocketDoor::refuse_unreachable(ClientSink& sink) {
  for (const auto& [place, error] : std::exchange(unreachable_, {}))
    sink.refused(place, std::strerror(error), Clock::now());
}

void WebSocketDoor::watch_as_wanted(std::uint32_t place) {
  Place& it = places_[place];
  if (it.watched_to_write == it.client->waits_to_write()) return;
  it.watched_to_write = !it.watched_to_write;
  watch(place, EPOLL_CTL_MOD);
}

void WebSocketDoor::watch(std::uint32_t place, int operation) {
  const Place& it = places_[place];
  epoll_event event{};
  event.events = it.watched_to_write ? EPOLLIN | EPOLLOUT : EPOLLIN;
  event.data.u64 = std::uint64_t{it.life} << 32 | place;
  ::epoll_ctl(epoll_.get(), operation, it.client->socket(), &event);
}

}  // namespace millrace::load
