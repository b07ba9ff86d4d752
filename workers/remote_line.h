// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <string_view>
#include <variant>

#include "base/bytes.h"
#include "schemas/worker_messages.h"
#include "transport/zeromq_message.h"
#include "transport/zeromq_router.h"

namespace millrace {

// A worker on another machine, between the thread that has the socket and the home thread of its
// pipeline. What waits on the way is bounded by these counts: the mailboxes have room for it.
//
// The thread of the socket owns it, from the Hello until the home thread has said `ended`.
struct RemoteLine {
  explicit RemoteLine(ZeromqPeer of) : peer(of) {}

  const ZeromqPeer peer;
  // Weights of messages that wait for the socket, and for the home thread. Who puts one in adds,
  // who takes it out subtracts. Relaxed: they guard nothing but themselves.
  std::atomic<std::size_t> unsent{0}, unread{0};
};

// So many at once, watchers and those that have not said Hello among them.
inline constexpr std::size_t max_remote_lines = 1024;

// What may wait for the home thread of one line. One that sends more is cut: it has batches to give
// back for its credits alone.
inline constexpr std::size_t max_unread = std::size_t{256} << 20;

// What a message weighs beside its bytes: libzmq may keep a whole buffer for a small one.
inline std::size_t weight_of(Bytes message) { return message.size() + 1024; }

// To the home thread. The last one of a line is `lost`.
struct FromRemote {
  struct Malformed {
    std::string_view why;
  };
  struct Lost {};

  RemoteLine* line = nullptr;
  std::variant<Lost, worker_protocol::Hello, ZeromqMessage, Malformed> what;
};

// To the thread of the socket. The last one of a line is `ended`; then the home thread has nothing
// to do with it any more.
struct ToRemote {
  struct Ended {};

  RemoteLine* line = nullptr;
  std::variant<Ended, ZeromqMessage> what;
};

}  // namespace millrace
