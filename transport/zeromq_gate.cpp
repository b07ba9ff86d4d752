// SPDX-License-Identifier: Apache-2.0
#include "transport/zeromq_gate.h"

#include <charconv>
#include <string>
#include <string_view>

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

bool ZeromqGate::take() {
  request_.clear();
  do {
    if (!zeromq::receive(socket_, request_.emplace_back())) return false;
  } while (request_.back().more());
  return true;
}

void ZeromqGate::answer() {
  const bool welcome = request_.size() >= request_parts && is_welcome(request_[peer_name]);
  const std::string number = welcome ? std::to_string(++admitted_) : "";
  // Version, request, status, its text, user, what else is known of the peer.
  const std::string_view id =
      request_.size() > request_id ? request_[request_id].to_string_view() : std::string_view();
  const std::string_view answer[] = {"1.0", id, welcome ? "200" : "400", "", number, ""};
  for (const std::string_view& each : answer) {
    zmq::message_t part(each.data(), each.size());
    (void)zeromq::send(socket_, part.handle(), &each == std::end(answer) - 1 ? 0 : ZMQ_SNDMORE);
  }
}

std::uint64_t ZeromqGate::number_of(zmq_msg_t* part) {
  const char* const user = zmq_msg_gets(part, "User-Id");
  std::uint64_t number = 0;
  if (user) std::from_chars(user, user + std::string_view(user).size(), number);
  return number;
}

}  // namespace millrace
