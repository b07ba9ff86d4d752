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
#include "transport/zeromq_gate.h"
#include "transport/zeromq_message.h"
#include "transport/zeromq_monitor.h"

namespace millrace {

// The TCP connections of one bound ZeroMQ socket, as libzmq's monitor tells of them: who is let in,
// how many there are, which have ended, and the means to cut one, which libzmq lacks.
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

  // Readable: answer() has something to do.
  zmq::socket_t& asked() { return gate_.socket(); }
  // Lets in who may come in.
  void answer(Time now);

  // Over which one somebody's first message came; nothing where it has ended, or is being cut.
  std::optional<Id> heard(ZeromqMessage& part);
  // Another message came over it.
  void spoke(Id id);
  // Those that were heard and have ended since the last call.
  std::vector<Id> take_ended() { return std::exchange(ended_, {}); }

  void cut(Id id);
  // All that has arrived was received: those that ended and were not heard until now never will be.
  void settle();
  // Cuts those that were accepted before then, and were not heard. Requires: as settle().
  void cut_silent(Time before);
  // Cuts those whose message does not end: libzmq has read more than `longest` bytes of it, which
  // it keeps and never gives out. Requires: since the last call each connection that had a message
  // was heard once.
  void cut_endless(std::uint64_t longest);

  std::size_t size() const { return open_.size() + unheard_.size(); }
  // settle() has something to count.
  bool is_unsettled() const { return !unheard_.empty(); }

 private:
  struct Connection {
    Id id;
    Share room;
    Time accepted;
    std::uint64_t admitted;  // by the gate before it
    bool heard = false;
    bool spoke = false;   // since the last cut_endless()
    bool doomed = false;  // to be cut, or cut
    // Bytes that libzmq had read at the last cut_endless(), and at the last after it spoke.
    std::uint64_t read = 0, read_when_it_spoke = 0;
  };
  using Open = std::unordered_map<int, Connection>;  // by descriptor

  void read_events(Time now);
  void accepted(int descriptor, Time now);
  void disconnected(int descriptor);
  Connection* find(Id id);
  void doom(Connection& connection);
  void cut_doomed();

  ZeromqGate gate_;
  ZeromqMonitor monitor_;
  Budget& room_;
  ZeromqStats& stats_;
  Open open_;
  std::vector<Id> ended_;
  std::vector<int> unheard_;  // descriptors that ended connections had
  std::vector<Id> doomed_;    // to be cut as soon as there is a descriptor for it
  std::uint64_t last_ = 0;
};

}  // namespace millrace
