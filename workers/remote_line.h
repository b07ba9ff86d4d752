// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <string_view>
#include <variant>

#include "base/budget.h"
#include "base/bytes.h"
#include "schemas/worker_messages.h"
#include "transport/zeromq_message.h"
#include "transport/zeromq_router.h"

namespace millrace {

// A worker on another machine, between the thread that has the socket and the home thread of its
// pipeline. What waits on the way is bounded by these counts.
//
// The thread of the socket owns it, from the Hello until the home thread has said `ended`.
struct RemoteLine {
  explicit RemoteLine(ZeromqPeer of) : peer(of) {}

  const ZeromqPeer peer;
  // Weights of messages that wait for the socket, and of those without a Share for the home thread.
  // Who puts one in adds, who takes it out subtracts. Relaxed: they guard nothing but themselves.
  std::atomic<std::size_t> unsent{0}, unread{0};
};

// So many at once, watchers and those that have not said Hello among them; and so many with those
// that are gone, until their home threads have heard it.
inline constexpr std::size_t max_remote_lines = 1024;

// So much of each line may wait for its home thread, whatever the others do: what a worker says
// while that is busy. What waits beyond takes its weight from a budget that all lines share, and
// when there is no room in it, the line that it is of is cut. To stop reading would stop all, for
// they have one socket.
inline constexpr std::size_t own_unread = std::size_t{256} << 10;

// The memory of a message that waits, in bytes.
inline std::size_t weight_of(Bytes message) { return message.size() + 1024; }

// Capacity of the mailboxes between: weights bound what waits in them, and never let in so many.
inline constexpr std::size_t max_messages = std::size_t{1} << 28;

// To the home thread. The last one of a line is `lost`.
struct FromRemote {
  struct Malformed {
    std::string_view why;
  };
  struct NoRoom {};
  struct Lost {};
  using What = std::variant<Lost, worker_protocol::Hello, ZeromqMessage, Malformed, NoRoom>;

  RemoteLine* line = nullptr;
  What what;
  Share room = {};  // of the budget of all lines, where it is beyond what the line has of its own
};

// To the thread of the socket. The last one of a line is `ended`; then the home thread has nothing
// to do with it any more.
struct ToRemote {
  struct Ended {};

  RemoteLine* line = nullptr;
  std::variant<Ended, ZeromqMessage> what;
};

}  // namespace millrace
