// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>
#include <zmq.hpp>

namespace millrace {

// Whom libzmq asks about everybody who shakes hands with a guarded socket (ZAP, ZeroMQ's RFC 27).
// It lets all in but those who name themselves as libzmq names peers that have no name, which would
// end the process when the two met. Since libzmq asks at all, it refuses those who cannot be asked
// about: ZMTP 1 and 2. One for each context. Those it lets in it numbers, and every message of
// theirs has the number.
//
// Confined to one thread.
class ZeromqGate {
 public:
  explicit ZeromqGate(zmq::context_t& context);

  // Requires: it is not bound yet.
  void guard(zmq::socket_t& socket);

  // Readable: there are questions.
  zmq::socket_t& socket() { return socket_; }
  // The next question; false when there is none. It is answered before the next one is taken.
  bool take();
  void answer();

  // As many were let in: they are 1, 2, 3 …
  std::uint64_t admitted() const { return admitted_; }
  // Whose message this is a part of; 0 where it does not say.
  static std::uint64_t number_of(zmq_msg_t* part);

 private:
  zmq::socket_t socket_;
  std::vector<zmq::message_t> request_;
  std::uint64_t admitted_ = 0;
};

}  // namespace millrace
