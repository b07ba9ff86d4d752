// SPDX-License-Identifier: Apache-2.0
#include "transport/zeromq/dealer.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <zmq.hpp>

#include "transport/zeromq/monitor.h"
#include "transport/zeromq/socket.h"

namespace millrace {
namespace {

constexpr Duration heartbeat = std::chrono::seconds(2);
constexpr int high_water = 256;
constexpr int sockets = 8;  // ours, the monitor's two ends, and those that libzmq uses internally
// If reconnecting is off, libzmq drops received but unread messages when a connection ends. So it
// is on, with an interval that a dealer does not outlive.
constexpr int reconnect_interval = 24 * 60 * 60 * 1'000;  // ms
constexpr int monitored_events =
    ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
    ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_DISCONNECTED |
    ZMQ_EVENT_CLOSED;

// At least 1 ms: 0 means no timeout to libzmq.
int timeout(Duration time) {
  using std::chrono::milliseconds;
  return static_cast<int>(std::clamp(std::chrono::ceil<milliseconds>(time), milliseconds(1),
                                     milliseconds(std::numeric_limits<int>::max()))
                              .count());
}

void set_options(zmq::socket_t& socket, std::size_t max_message, Duration silence,
                 std::chrono::milliseconds linger, bool ipv6) {
  using namespace zmq;
  socket.set(sockopt::maxmsgsize, static_cast<std::int64_t>(max_message));
  socket.set(sockopt::sndhwm, high_water);
  socket.set(sockopt::rcvhwm, high_water);
  socket.set(sockopt::handshake_ivl, 5'000);
  socket.set(sockopt::heartbeat_ivl, timeout(std::min(heartbeat, silence / 3)));
  socket.set(sockopt::heartbeat_timeout, timeout(silence));
  socket.set(sockopt::reconnect_ivl, reconnect_interval);
  socket.set(sockopt::linger, static_cast<int>(linger.count()));
  socket.set(sockopt::tcp_keepalive, 1);
  socket.set(sockopt::ipv6, ipv6);
}

}  // namespace

class ZeromqDealer::Connected {
 public:
  Connected(const std::string& endpoint, std::size_t max_message, Duration silence,
            std::chrono::milliseconds linger)
      : context_(1, sockets),
        socket_(context_, zmq::socket_type::dealer),
        monitor_(context_, socket_, "inproc://connection", monitored_events) {
    set_options(socket_, max_message, silence, linger, endpoint.find('[') != std::string::npos);
    socket_.connect(endpoint);
  }
  ~Connected() {
    if (process_events() == State::ended) socket_.set(zmq::sockopt::linger, 0);
  }

  std::array<int, 2> descriptors() {
    return {socket_.get(zmq::sockopt::fd), monitor_.socket().get(zmq::sockopt::fd)};
  }

  State process_events() {
    while (const auto event = monitor_.next()) {
      switch (event->what) {
        case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
          if (state_ == State::connecting) state_ = State::connected;
          break;
        case ZMQ_EVENT_CLOSED: end("no service listens there"); break;
        case ZMQ_EVENT_DISCONNECTED:
          end(state_ == State::connected ? "the connection was lost" : "no service answers there");
          break;
        default: end("the server there is not a Millrace service"); break;
      }
    }
    return state_;
  }
  const std::string& reason() const { return reason_; }

  std::optional<ZeromqMessage> receive() {
    ZeromqMessage message;
    if (!zeromq::receive(socket_, part(message))) return std::nullopt;
    if (zmq_msg_more(part(message)) == 0) return message;
    while (zmq_msg_more(part(message)) != 0 && zeromq::receive(socket_, part(message))) {
    }
    end("the service sent a message with several parts");
    return std::nullopt;
  }

  bool send(Bytes bytes) {
    if (state_ != State::connected) return false;  // libzmq would queue it for the next connection
    ZeromqMessage message = ZeromqMessage::copy_of(bytes);
    return zeromq::send(socket_, part(message), 0) == 0;
  }

  bool has_events(bool to_receive, bool to_send) {
    const bool may_send = to_send && state_ == State::connected;
    const int of_socket = (to_receive ? ZMQ_POLLIN : 0) | (may_send ? ZMQ_POLLOUT : 0);
    return (socket_.get(zmq::sockopt::events) & of_socket) != 0 ||
           (monitor_.socket().get(zmq::sockopt::events) & ZMQ_POLLIN) != 0;
  }

 private:
  static zmq_msg_t* part(ZeromqMessage& message) {
    return static_cast<zmq_msg_t*>(message.handle());
  }

  void end(const char* reason) {
    if (state_ == State::ended) return;
    state_ = State::ended;
    reason_ = reason;
  }

  zmq::context_t context_;
  zmq::socket_t socket_;
  ZeromqMonitor monitor_;
  State state_ = State::connecting;
  std::string reason_;
};

ZeromqDealer::ZeromqDealer(const std::string& endpoint, std::size_t max_message, Duration silence,
                           std::chrono::milliseconds linger) {
  try {
    connected_ = std::make_unique<Connected>(endpoint, max_message, silence, linger);
  } catch (const zmq::error_t& error) {
    throw std::runtime_error("cannot connect to " + endpoint + ": " + error.what());
  }
}
ZeromqDealer::~ZeromqDealer() = default;

std::array<int, 2> ZeromqDealer::descriptors() const { return connected_->descriptors(); }
ZeromqDealer::State ZeromqDealer::process_events() { return connected_->process_events(); }
const std::string& ZeromqDealer::reason() const { return connected_->reason(); }
std::optional<ZeromqMessage> ZeromqDealer::receive() { return connected_->receive(); }
bool ZeromqDealer::send(Bytes message) { return connected_->send(message); }
bool ZeromqDealer::has_events(bool to_receive, bool to_send) {
  return connected_->has_events(to_receive, to_send);
}

}  // namespace millrace
