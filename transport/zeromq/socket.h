// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <zmq.hpp>

namespace millrace::zeromq {

// Receives the next part into `part`, which zmq_msg_init() has initialised; false if no part waits.
// Repeats interrupted calls, which zmq.hpp treats as errors.
inline bool receive(zmq::socket_t& socket, zmq_msg_t* part) {
  for (;;) {
    if (zmq_msg_recv(part, socket.handle(), ZMQ_DONTWAIT) >= 0) return true;
    if (zmq_errno() == EAGAIN) return false;
    if (zmq_errno() != EINTR) throw zmq::error_t();
  }
}
inline bool receive(zmq::socket_t& socket, zmq::message_t& part) {
  return receive(socket, part.handle());
}

// Sends a part and leaves `part` empty. Returns 0, or, if the part was not accepted, EAGAIN (the
// peer must read first) or EHOSTUNREACH (there is no such peer).
inline int send(zmq::socket_t& socket, zmq_msg_t* part, int flags) {
  for (;;) {
    if (zmq_msg_send(part, socket.handle(), flags | ZMQ_DONTWAIT) >= 0) return 0;
    const int error = zmq_errno();
    if (error == EAGAIN || error == EHOSTUNREACH) return error;
    if (error != EINTR) throw zmq::error_t();
  }
}

}  // namespace millrace::zeromq
