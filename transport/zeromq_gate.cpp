// SPDX-License-Identifier: Apache-2.0
#include "transport/zeromq_gate.h"

#include <string>
#include <string_view>
#include <vector>

#include "transport/zeromq_socket.h"

namespace millrace {

namespace {

constexpr std::size_t request_parts = 6;  // at least
constexpr std::size_t request_id = 1, peer_name = 4;

bool is_welcome(const zmq::message_t& name) { return !name.to_string_view().starts_with('\0'); }

}  // namespace

ZeromqGate::ZeromqGate(zmq::context_t& context) : socket_(context, zmq::socket_type::rep) {
  socket_.set(zmq::sockopt::linger, 0);
  socket_.bind("inproc://zeromq.zap.01");
}

void ZeromqGate::guard(zmq::socket_t& socket) { socket.set(zmq::sockopt::zap_domain, "millrace"); }

void ZeromqGate::answer() {
  for (;;) {
    std::vector<zmq::message_t> request(1);
    if (!zeromq::receive(socket_, request.back())) return;
    while (request.back().more())
      if (!zeromq::receive(socket_, request.emplace_back())) return;
    const bool welcome = request.size() >= request_parts && is_welcome(request[peer_name]);
    // Version, request, status, its text, user, what else is known of the peer.
    const std::string_view id =
        request.size() > request_id ? request[request_id].to_string_view() : std::string_view();
    const std::string_view answer[] = {"1.0", id, welcome ? "200" : "400", "", "", ""};
    for (const std::string_view& each : answer) {
      zmq::message_t part(each.data(), each.size());
      (void)zeromq::send(socket_, part.handle(), &each == std::end(answer) - 1 ? 0 : ZMQ_SNDMORE);
    }
  }
}

}  // namespace millrace
