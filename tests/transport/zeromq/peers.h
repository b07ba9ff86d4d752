// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <zmq.hpp>

#include "base/file_descriptor.h"

namespace millrace::test {

// A DEALER of libzmq with its own context. No call blocks.
class Dealer {
 public:
  explicit Dealer(std::uint16_t port, const std::string& name = "", int receive_high_water = 1000)
      : socket_(context_, zmq::socket_type::dealer) {
    if (!name.empty()) socket_.set(zmq::sockopt::routing_id, name);
    socket_.set(zmq::sockopt::rcvhwm, receive_high_water);
    socket_.set(zmq::sockopt::sndhwm, 0);
    socket_.connect("tcp://127.0.0.1:" + std::to_string(port));
  }

  zmq::socket_t& socket() { return socket_; }
  Dealer& send(std::string_view text, bool more = false) {
    if (!socket_.send(zmq::buffer(text), more ? zmq::send_flags::sndmore : zmq::send_flags::none))
      throw std::runtime_error("a dealer does not send");
    return *this;
  }
  std::optional<std::string> receive() {
    zmq::message_t message;
    if (!socket_.recv(message, zmq::recv_flags::dontwait)) return std::nullopt;
    return message.to_string();
  }
  // Drops the connection and the unsent messages.
  void vanish() {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.close();
  }
  // Sends the queued messages first.
  void leave() {
    socket_.close();
    context_.close();
  }

 private:
  zmq::context_t context_;
  zmq::socket_t socket_;
};

// A ROUTER of libzmq with one peer and its own context: the service, for tests of the client.
class RawRouter {
 public:
  RawRouter() : socket_(context_, zmq::socket_type::router) {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::rcvtimeo, 30'000);
    socket_.bind("tcp://127.0.0.1:*");
    endpoint_ = socket_.get(zmq::sockopt::last_endpoint);
  }

  const std::string& endpoint() const { return endpoint_; }

  // The next message; its sender becomes the peer. Throws if none arrives.
  std::string receive() {
    zmq::message_t message;
    if (!socket_.recv(name_) || !socket_.recv(message))
      throw std::runtime_error("the peer does nothing");
    return message.to_string();
  }
  void send(std::string_view message, bool more = false) {
    if (!more_) send_part({name_.data<char>(), name_.size()}, true);
    send_part(message, more_ = more);
  }
  void hang_up() { socket_.close(); }
  // Sends the queued messages first.
  void leave() {
    socket_.set(zmq::sockopt::linger, 30'000);
    socket_.close();
    context_.close();
  }

 private:
  void send_part(std::string_view bytes, bool more) {
    if (!socket_.send(zmq::buffer(bytes), more ? zmq::send_flags::sndmore : zmq::send_flags::none))
      throw std::runtime_error("the peer does not read");
  }

  zmq::context_t context_;
  zmq::socket_t socket_;
  std::string endpoint_;
  zmq::message_t name_;
  bool more_ = false;  // some parts of a message were sent
};

// A TCP connection over which the test writes valid or invalid ZMTP.
class RawPeer {
 public:
  // `receive_buffer`: bytes; 0: the kernel decides.
  explicit RawPeer(std::uint16_t port, int receive_buffer = 0)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_buffer > 0)
      ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      throw std::runtime_error("nobody listens");
  }

  // Its own address, as the other end sees it.
  std::string address() const {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    return "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }

  RawPeer& send(std::string_view bytes) {
    (void)::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    return *this;
  }
  // ZMTP 3, mechanism NULL.
  RawPeer& greet() {
    using namespace std::string_literals;
    return send("\xff\0\0\0\0\0\0\0\0\x7f\x03"s + minor_ + "NULL" + std::string(48, '\0'));
  }
  // It announces ZMTP 3.0, as libzmq 4.1 and the libraries without libzmq do.
  RawPeer& is_old() {
    minor_ = '\0';
    return *this;
  }
  RawPeer& command(const std::string& body) {
    return send("\6" + big_endian(body.size(), 8) + body);
  }
  // Completes the handshake as a DEALER with this routing id.
  RawPeer& shake_hands(const std::string& name = "") {
    using namespace std::string_literals;
    return greet().command("\5READY\13Socket-Type\0\0\0\6DEALER\10Identity"s +
                           big_endian(name.size(), 4) + name);
  }
  // Sends a short part; with `more`, further parts of the message follow.
  RawPeer& part(const std::string& bytes, bool more = false) {
    return send(std::string(1, more ? '\1' : '\0') + static_cast<char>(bytes.size()) + bytes);
  }

  // The other end has completed the handshake.
  bool is_ready() { return has_received("READY"); }
  bool has_received(std::string_view bytes) {
    read();
    return received_.find(bytes) != received_.npos;
  }
  // Reads and drops some of the bytes that have arrived. Returns their number.
  std::size_t read_some() {
    std::array<char, std::size_t{64} << 10> bytes;
    const ssize_t got = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    return got > 0 ? static_cast<std::size_t>(got) : 0;
  }
  // The other end has ended the connection.
  bool is_over() { return read(); }
  void hang_up() { socket_ = FileDescriptor(); }

  static std::string big_endian(std::uint64_t value, int width) {
    std::string bytes;
    while (width > 0) bytes += static_cast<char>(value >> 8 * --width);
    return bytes;
  }

 private:
  bool read() {
    char bytes[4096];
    for (;;) {
      const ssize_t got = ::recv(socket_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return got == 0 || errno != EAGAIN;
      received_.append(bytes, static_cast<std::size_t>(got));
    }
  }

  FileDescriptor socket_;
  char minor_ = '\1';
  std::string received_;
};

}  // namespace millrace::test
