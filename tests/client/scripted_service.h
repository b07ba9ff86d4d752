// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <string>
#include <string_view>
#include <thread>

#include "transport/net/spawn.h"
#include "transport/websocket/handshake.h"
#include "transport/websocket/websocket_connection.h"

namespace millrace::test {

// What a service of a test does. Called in the thread of the service.
class Host {
 public:
  virtual ~Host() = default;
  // The refusal of a request; empty: its connection is upgraded.
  virtual std::string refuse(const std::string& request) = 0;
  virtual Task<> serve(Connection& connection, std::string request) = 0;
};

inline std::string target_of(const std::string& request) {
  return request.substr(4, request.find(' ', 4) - 4);
}

// A service on a free port of the loopback, with its own thread. Each connection is upgraded and
// then runs a test's script, or gets a fixed answer to its request and is closed; or a host
// decides.
class ScriptedService {
 public:
  using Script = Task<> (*)(Connection& connection, std::string target);

  explicit ScriptedService(Script script) : ScriptedService(script, "") {}
  // Answers every request with `answer`.
  explicit ScriptedService(std::string answer) : ScriptedService(nullptr, std::move(answer)) {}
  explicit ScriptedService(Host& host) : ScriptedService(nullptr, "", &host) {}
  ~ScriptedService() { context_.stop(); }

  std::string url() const {
    return "ws://127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port());
  }

 private:
  ScriptedService(Script script, std::string answer, Host* host = nullptr)
      : script_(script),
        host_(host),
        answer_(std::move(answer)),
        acceptor_(context_, Tcp::endpoint(net::ip::address_v4::loopback(), 0)) {
    spawn(context_.get_executor(), accept());
    thread_ = std::jthread([this] { context_.run(); });
  }

  Task<> accept() {
    for (;;) {
      auto [error, socket] = co_await acceptor_.async_accept(context_.get_executor(), no_throw);
      if (error) co_return;
      socket.set_option(Tcp::no_delay(true));
      spawn(context_.get_executor(), serve(std::move(socket)));
    }
  }

  Task<> serve(Socket socket) {
    std::string request;
    const auto [error, size] =
        co_await net::async_read_until(socket, net::dynamic_buffer(request), "\r\n\r\n", no_throw);
    if (error) co_return;  // the client has already disconnected
    const std::string answer = host_ ? host_->refuse(request) : answer_;
    if (script_ == nullptr && (!host_ || !answer.empty())) {
      co_await net::async_write(socket, net::buffer(answer), no_throw);
      co_return;
    }
    constexpr std::string_view field = "Sec-WebSocket-Key: ";
    const std::size_t key = request.find(field) + field.size();
    const std::string upgraded =
        answer_to(Upgrade{.key = request.substr(key, request.find('\r', key) - key)});
    std::string target = target_of(request);
    const auto [unsent, written] =
        co_await net::async_write(socket, net::buffer(upgraded), no_throw);
    if (unsent) co_return;
    const auto connection = open_websocket(Role::server, std::move(socket), {}, 1 << 20);
    if (host_)
      co_await host_->serve(*connection, std::move(request));
    else
      co_await script_(*connection, std::move(target));
  }

  net::io_context context_{1};
  const Script script_;
  Host* const host_;
  const std::string answer_;
  net::basic_socket_acceptor<Tcp, Executor> acceptor_;
  std::jthread thread_;  // the last member: it ends before the members that it uses
};

inline Task<> send_text(Connection& connection, std::string text) {
  co_await connection.send(Connection::Kind::text, text);
}

// Ignores messages until the connection ends.
inline Task<> await_end(Connection& connection) {
  for (;;) {
    const auto received = co_await connection.receive();
    if (std::holds_alternative<Connection::Ended>(received)) co_return;
  }
}

inline const std::string ready =
    R"({"type":"ready","stream":"mic","pipeline":"default","frames":0})";

}  // namespace millrace::test
