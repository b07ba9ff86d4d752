// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <zmq.hpp>

namespace millrace {

// Whom libzmq asks about everybody who shakes hands with a guarded socket (ZAP, ZeroMQ's RFC 27).
// It lets all in but those who name themselves as libzmq names peers that have no name, which would
// end the process when the two met. Since libzmq asks at all, it refuses those who cannot be asked
// about: ZMTP 1 and 2. One for each context, made before the sockets that it guards.
//
// Confined to one thread.
class ZeromqGate {
 public:
  explicit ZeromqGate(zmq::context_t& context);

  // Requires: it is not bound yet.
  void guard(zmq::socket_t& socket);

  // Readable: answer() has something to do.
  zmq::socket_t& socket() { return socket_; }
  void answer();

 private:
  zmq::socket_t socket_;
};

}  // namespace millrace
