// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <zmq.hpp>

#include "transport/zeromq/socket.h"

namespace millrace {

// Receives libzmq's events about the connections of a socket. Confined to the thread of the socket;
// destroyed before it.
class ZeromqMonitor {
 public:
  struct Event {
    std::uint16_t what = 0;  // ZMQ_EVENT_…
    std::int32_t value = 0;
  };

  // `endpoint` is a name that no other monitor of the context has.
  ZeromqMonitor(zmq::context_t& context, zmq::socket_t& socket, const std::string& endpoint,
                int event_mask)
      : socket_(socket), events_(context, zmq::socket_type::pair) {
    // No limit: a full queue of events would block libzmq's I/O thread, and so all peers.
    events_.set(zmq::sockopt::rcvhwm, 0);
    events_.set(zmq::sockopt::linger, 0);
    if (zmq_socket_monitor(socket_.handle(), endpoint.c_str(), event_mask) != 0)
      throw zmq::error_t();
    events_.connect(endpoint);
  }
  ~ZeromqMonitor() { zmq_socket_monitor(socket_.handle(), nullptr, 0); }
  ZeromqMonitor(const ZeromqMonitor&) = delete;
  ZeromqMonitor& operator=(const ZeromqMonitor&) = delete;

  // Readable while there are events.
  zmq::socket_t& socket() { return events_; }

  // The next event; nullopt if no event waits.
  std::optional<Event> next() {
    // The format of libzmq: number and value in the first part, the endpoint in the second.
    zmq::message_t part;
    if (!zeromq::receive(events_, part)) return std::nullopt;
    Event event;
    if (part.size() == sizeof event.what + sizeof event.value) {
      std::memcpy(&event.what, part.data(), sizeof event.what);
      std::memcpy(&event.value, static_cast<const char*>(part.data()) + sizeof event.what,
                  sizeof event.value);
    }
    while (part.more() && zeromq::receive(events_, part)) {
    }
    return event;
  }

 private:
  zmq::socket_t& socket_;
  zmq::socket_t events_;
};

}  // namespace millrace
