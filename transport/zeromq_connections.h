// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>
#include <zmq.hpp>

#include "base/budget.h"
#include "base/time.h"
#include "transport/stats.h"
#include "transport/zeromq_monitor.h"

namespace millrace {

// The TCP connections of one bound ZeroMQ socket, as libzmq's monitor tells of them: how many there
// are, which have ended, and the means to cut one, which libzmq lacks.
//
// Confined to the thread of the socket; destroyed before it.
class ZeromqConnections {
 public:
  using Id = std::uint64_t;  // never used again, as descriptors are

  // `socket` is not bound yet. A connection takes 1 of `room`, or is cut.
  ZeromqConnections(zmq::context_t& context, zmq::socket_t& socket, Budget& room,
                    ZeromqStats& stats);

  // Readable: read() has something to do.
  zmq::socket_t& events() { return monitor_.socket(); }
  // Takes in what has happened.
  void read(Time now);

  // Somebody's first message came over the connection that has this descriptor, or had it: which
  // one it is; nothing where it has ended, or is being cut.
  std::optional<Id> heard(int descriptor);
  // Those that were heard and have ended since the last call.
  std::vector<Id> take_ended() { return std::exchange(ended_, {}); }

  void cut(Id id);
  // All that has arrived was received: those that ended and were not heard until now never will be.
  // Cuts those that were accepted before then, and were not heard either.
  void end_silent(Time before);
  bool empty() const { return open_.empty() && unheard_.empty(); }
  // end_silent() has something to count.
  bool is_unsettled() const { return !unheard_.empty(); }

 private:
  struct Connection {
    Id id;
    Share room;
    Time accepted;
    bool heard = false;
    bool cut = false;
  };
  using Open = std::unordered_map<int, Connection>;  // by descriptor

  void read_events(Time now);
  void accepted(int descriptor, Time now);
  void disconnected(int descriptor);
  bool cut(int descriptor, Id id);

  ZeromqMonitor monitor_;
  Budget& room_;
  ZeromqStats& stats_;
  Open open_;
  std::vector<Id> ended_;
  std::vector<int> unheard_;   // descriptors that ended connections had
  std::vector<int> unwanted_;  // descriptors of connections that found no room
  Id next_ = 1;
};

}  // namespace millrace
