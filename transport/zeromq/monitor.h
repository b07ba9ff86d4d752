// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <zmq.hpp>

#include "transport/zeromq/socket.h"

namespace millrace {

// What libzmq tells of the connections of a socket. Confined to the thread of the socket; destroyed
// before it.
class ZeromqMonitor {
 public:
  struct Event {
    std::uint16_t what = 0;  // ZMQ_EVENT_…
    std::int32_t value = 0;
  };

  // `place` is a name that no other monitor of the context has.
  ZeromqMonitor(zmq::context_t& context, zmq::socket_t& socket, const std::string& place,
                int watched)
      : socket_(socket), events_(context, zmq::socket_type::pair) {
    // A monitor whose reader is late holds up libzmq's own thread, and with it all peers.
    events_.set(zmq::sockopt::rcvhwm, 0);
    events_.set(zmq::sockopt::linger, 0);
    if (zmq_socket_monitor(socket_.handle(), place.c_str(), watched) != 0) throw zmq::error_t();
    events_.connect(place);
  }
  ~ZeromqMonitor() { zmq_socket_monitor(socket_.handle(), nullptr, 0); }
  ZeromqMonitor(const ZeromqMonitor&) = delete;
  ZeromqMonitor& operator=(const ZeromqMonitor&) = delete;

  // Readable: there are events.
  zmq::socket_t& socket() { return events_; }

  // As libzmq writes it: number and value in the first part, the endpoint in the second.
  std::optional<Event> next() {
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
