// SPDX-License-Identifier: Apache-2.0
#include "transport/zeromq_connections.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "transport/file_descriptor.h"

namespace millrace {

namespace {

constexpr int watched = ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED;

}  // namespace

ZeromqConnections::ZeromqConnections(zmq::context_t& context, zmq::socket_t& socket, Budget& room,
                                     ZeromqStats& stats)
    : monitor_(context, socket, "inproc://connections", watched), room_(room), stats_(stats) {}

void ZeromqConnections::read(Time now) {
  read_events(now);
  for (const int descriptor : std::exchange(unwanted_, {})) {
    const auto found = open_.find(descriptor);
    if (found != open_.end() && !found->second.room) (void)cut(descriptor, found->second.id);
  }
}

void ZeromqConnections::read_events(Time now) {
  while (const auto event = monitor_.next()) {
    switch (event->what) {
      case ZMQ_EVENT_ACCEPTED: accepted(event->value, now); break;
      case ZMQ_EVENT_DISCONNECTED: disconnected(event->value); break;
      case ZMQ_EVENT_HANDSHAKE_SUCCEEDED: stats_.opened.add(); break;
      default: break;
    }
  }
}

void ZeromqConnections::accepted(int descriptor, Time now) {
  Connection connection{.id = next_++, .room = Share(room_, 1), .accepted = now};
  if (!connection.room) {
    stats_.refused[Refusal::limit_global].add();
    unwanted_.push_back(descriptor);
  }
  open_.insert_or_assign(descriptor, std::move(connection));
  stats_.connections.set(static_cast<std::int64_t>(open_.size()));
}

void ZeromqConnections::disconnected(int descriptor) {
  const auto found = open_.find(descriptor);
  if (found == open_.end()) return;
  if (found->second.heard)
    ended_.push_back(found->second.id);
  else if (found->second.room && !found->second.cut)
    unheard_.push_back(descriptor);
  open_.erase(found);
  stats_.connections.set(static_cast<std::int64_t>(open_.size()));
  stats_.disconnected.add();
}

std::optional<ZeromqConnections::Id> ZeromqConnections::heard(int descriptor) {
  const auto ended = std::ranges::find(unheard_, descriptor);
  if (ended != unheard_.end()) {
    unheard_.erase(ended);
    return std::nullopt;
  }
  const auto found = open_.find(descriptor);
  if (found == open_.end() || found->second.cut || !found->second.room) return std::nullopt;
  found->second.heard = true;
  return found->second.id;
}

void ZeromqConnections::cut(Id id) {
  const auto found = std::ranges::find(open_, id, [](const auto& open) { return open.second.id; });
  if (found != open_.end()) (void)cut(found->first, id);
}

void ZeromqConnections::end_silent(Time before) {
  stats_.refused[Refusal::handshake].add(unheard_.size());
  unheard_.clear();
  std::vector<int> silent;
  for (const auto& [descriptor, connection] : open_)
    if (!connection.heard && !connection.cut && connection.accepted < before)
      silent.push_back(descriptor);
  for (const int descriptor : silent) {
    const auto found = open_.find(descriptor);
    if (found != open_.end() && cut(descriptor, found->second.id))
      stats_.refused[Refusal::handshake].add();
  }
}

// libzmq tells of the end of a connection before it closes the descriptor. So if nothing of the
// kind was told once we have a descriptor of our own, then that is the connection's, and not that
// of somebody who got the same number after it. False where it has ended, or descriptors are short.
bool ZeromqConnections::cut(int descriptor, Id id) {
  const FileDescriptor own(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  read_events(Clock::now());
  const auto found = open_.find(descriptor);
  if (!own || found == open_.end() || found->second.id != id) return false;
  found->second.cut = true;
  return ::shutdown(own.get(), SHUT_RDWR) == 0;
}

}  // namespace millrace
