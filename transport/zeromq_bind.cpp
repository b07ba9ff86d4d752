// SPDX-License-Identifier: Apache-2.0
#include "transport/zeromq_bind.h"

#include <stdexcept>
#include <string>

namespace millrace {

namespace {

void set_options(zmq::socket_t& socket, const ZeromqBinding& binding) {
  using namespace zmq;
  socket.set(sockopt::maxmsgsize, static_cast<std::int64_t>(binding.max_message));
  socket.set(sockopt::sndhwm, binding.high_water);
  socket.set(sockopt::rcvhwm, binding.high_water);
  const auto milliseconds = [](std::chrono::milliseconds time) {
    return static_cast<int>(time.count());
  };
  socket.set(sockopt::handshake_ivl, milliseconds(binding.times.handshake));
  socket.set(sockopt::heartbeat_ivl, milliseconds(binding.times.heartbeat));
  socket.set(sockopt::heartbeat_timeout, milliseconds(binding.times.silence));
  socket.set(sockopt::heartbeat_ttl, milliseconds(binding.times.silence));
  socket.set(sockopt::linger, 1'000);
  socket.set(sockopt::backlog, 1'024);
  socket.set(sockopt::tcp_keepalive, 1);
  socket.set(sockopt::router_mandatory, true);
  socket.set(sockopt::router_handover, false);
  socket.set(sockopt::ipv6, binding.endpoint.find('[') != std::string::npos);
}

}  // namespace

void bind(zmq::socket_t& socket, const ZeromqBinding& binding) {
  set_options(socket, binding);
  try {
    socket.bind(binding.endpoint);
  } catch (const zmq::error_t& error) {
    throw std::runtime_error("cannot listen on " + binding.endpoint + ": " + error.what());
  }
}

}  // namespace millrace
