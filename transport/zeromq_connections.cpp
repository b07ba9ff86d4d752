// SPDX-License-Identifier: Apache-2.0
#include "transport/zeromq_connections.h"

#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "transport/file_descriptor.h"

namespace millrace {

namespace {

constexpr int watched = ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED;

// An Id has its connection's descriptor in its lower half.
constexpr int descriptor_of(ZeromqConnections::Id id) { return static_cast<std::int32_t>(id); }

// Bytes that libzmq has read of a connection: what came but for what waits in the kernel, asked for
// in this order, so that it is never too much.
std::uint64_t bytes_read(int descriptor) {
  tcp_info state{};
  socklen_t size = sizeof state;
  if (::getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &state, &size) != 0) return 0;
  int waiting = 0;
  if (::ioctl(descriptor, FIONREAD, &waiting) != 0) return 0;
  const auto left = static_cast<std::uint64_t>(waiting);
  return state.tcpi_bytes_received > left ? state.tcpi_bytes_received - left : 0;
}

}  // namespace

ZeromqConnections::ZeromqConnections(zmq::context_t& context, zmq::socket_t& socket, Budget& room,
                                     ZeromqStats& stats)
    : gate_(context),
      monitor_(context, socket, "inproc://connections", watched),
      room_(room),
      stats_(stats) {
  gate_.guard(socket);
}

void ZeromqConnections::read(Time now) {
  read_events(now);
  cut_doomed();
}

// Who is let in was accepted before, and so its number is greater than those that others got before
// it was told that it was accepted.
void ZeromqConnections::answer(Time now) {
  while (gate_.take()) {
    read_events(now);
    gate_.answer();
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
  const Id id = ++last_ << 32 | static_cast<std::uint32_t>(descriptor);
  Connection& connection =
      open_
          .insert_or_assign(
              descriptor,
              Connection{
                  .id = id, .room = Share(room_, 1), .accepted = now, .admitted = gate_.admitted()})
          .first->second;
  if (!connection.room) {
    stats_.refused[Refusal::limit_global].add();
    doom(connection);
  }
  stats_.connections.set(static_cast<std::int64_t>(open_.size()));
}

void ZeromqConnections::disconnected(int descriptor) {
  const auto found = open_.find(descriptor);
  if (found == open_.end()) return;
  const Connection& connection = found->second;
  if (connection.heard)
    ended_.push_back(connection.id);
  else if (!connection.doomed)
    unheard_.push_back(descriptor);
  open_.erase(found);
  stats_.connections.set(static_cast<std::int64_t>(open_.size()));
  stats_.disconnected.add();
}

ZeromqConnections::Connection* ZeromqConnections::find(Id id) {
  const auto found = open_.find(descriptor_of(id));
  return found != open_.end() && found->second.id == id ? &found->second : nullptr;
}

std::optional<ZeromqConnections::Id> ZeromqConnections::heard(ZeromqMessage& part) {
  const auto message = static_cast<zmq_msg_t*>(part.handle());
  const int descriptor = zmq_msg_get(message, ZMQ_SRCFD);
  const auto found = open_.find(descriptor);
  // Another one may have its descriptor by now.
  if (found == open_.end() || ZeromqGate::number_of(message) <= found->second.admitted) {
    const auto ended = std::ranges::find(unheard_, descriptor);
    if (ended != unheard_.end()) unheard_.erase(ended);
    return std::nullopt;
  }
  Connection& connection = found->second;
  if (connection.doomed) return std::nullopt;
  connection.heard = connection.spoke = true;
  return connection.id;
}

void ZeromqConnections::spoke(Id id) {
  if (Connection* const connection = find(id)) connection->spoke = true;
}

void ZeromqConnections::cut(Id id) {
  Connection* const connection = find(id);
  if (!connection) return;
  doom(*connection);
  cut_doomed();
}

void ZeromqConnections::settle() {
  stats_.refused[Refusal::handshake].add(unheard_.size());
  unheard_.clear();
}

void ZeromqConnections::cut_silent(Time before) {
  for (auto& [descriptor, connection] : open_) {
    if (connection.heard || connection.doomed || connection.accepted >= before) continue;
    stats_.refused[Refusal::handshake].add();
    doom(connection);
  }
  cut_doomed();
}

// Of a connection that has not spoken since the last call, no message was whole by then: all that
// was read of it since it spoke is of one message.
void ZeromqConnections::cut_endless(std::uint64_t longest) {
  for (auto& [descriptor, connection] : open_) {
    const std::uint64_t read = bytes_read(descriptor);
    if (connection.spoke) {
      connection.read_when_it_spoke = read;
    } else if (connection.read > connection.read_when_it_spoke + longest && !connection.doomed) {
      stats_.malformed.add();
      doom(connection);
    }
    connection.spoke = false;
    connection.read = read;
  }
  cut_doomed();
}

void ZeromqConnections::doom(Connection& connection) {
  if (!std::exchange(connection.doomed, true)) doomed_.push_back(connection.id);
}

// libzmq tells of the end of a connection before it closes the descriptor. So if nothing of the
// kind was told once we have a descriptor of our own, then that is the connection's, and not that
// of somebody who got the same number after it.
void ZeromqConnections::cut_doomed() {
  for (const Id id : std::exchange(doomed_, {})) {
    const FileDescriptor own(::fcntl(descriptor_of(id), F_DUPFD_CLOEXEC, 0));
    read_events(Clock::now());
    if (!find(id)) continue;
    if (own)
      (void)::shutdown(own.get(), SHUT_RDWR);
    else
      doomed_.push_back(id);
  }
}

}  // namespace millrace
