// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <zmq.hpp>

#include "transport/zeromq/message.h"

namespace millrace::zeromq {

// The next part of what has arrived into `part`, which zmq_msg_init made; false when there is none.
// zmq.hpp takes an interrupted call for an error.
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

// The next message of a ROUTER's: how many parts it has, the name of its peer among them; 0 when
// there is none. `body` is the last of them.
inline unsigned receive_from(zmq::socket_t& socket, ZeromqMessage& name, ZeromqMessage& body) {
  const auto first = static_cast<zmq_msg_t*>(name.handle());
  const auto last = static_cast<zmq_msg_t*>(body.handle());
  if (!receive(socket, first)) return 0;
  unsigned parts = 1;
  for (bool more = zmq_msg_more(first) != 0; more; more = zmq_msg_more(last) != 0) {
    if (!receive(socket, last)) break;  // no: they come together
    ++parts;
  }
  return parts;
}

// Sends a part and leaves `part` empty. 0, EAGAIN (the peer has to read first) or EHOSTUNREACH
// (there is no such peer): then nothing was taken.
inline int send(zmq::socket_t& socket, zmq_msg_t* part, int flags) {
  for (;;) {
    if (zmq_msg_send(part, socket.handle(), flags | ZMQ_DONTWAIT) >= 0) return 0;
    const int error = zmq_errno();
    if (error == EAGAIN || error == EHOSTUNREACH) return error;
    if (error != EINTR) throw zmq::error_t();
  }
}

// As send(), over a ROUTER to the peer of this name. `body` gives the message when there is room
// for it; where it throws, the peer gets an empty one.
template <class Body>
int send_to(zmq::socket_t& socket, ZeromqMessage name, Body body) {
  if (const int error = send(socket, static_cast<zmq_msg_t*>(name.handle()), ZMQ_SNDMORE))
    return error;
  // As the first part went, so does this. There must be one.
  ZeromqMessage message;
  const auto part = static_cast<zmq_msg_t*>(message.handle());
  try {
    message = body();
  } catch (...) {
    (void)send(socket, part, 0);
    throw;
  }
  (void)send(socket, part, 0);
  return 0;
}

}  // namespace millrace::zeromq
