// SPDX-License-Identifier: Apache-2.0
#include "transport/net/listener.h"

#include <netinet/tcp.h>

#include <algorithm>
#include <boost/asio/detail/socket_option.hpp>
#include <sstream>
#include <stdexcept>

namespace millrace {
namespace {

using ReusePort = net::detail::socket_option::boolean<SOL_SOCKET, SO_REUSEPORT>;
using UserTimeout = net::detail::socket_option::integer<IPPROTO_TCP, TCP_USER_TIMEOUT>;
using KeepAliveIdle = net::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPIDLE>;
using KeepAliveInterval = net::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPINTVL>;

constexpr int backlog = 1024;
constexpr std::chrono::milliseconds shortest_wait{10};
constexpr std::chrono::milliseconds longest_wait{1000};

// Accepted sockets inherit these options. The receive buffer must be set before a connection is
// made, because it determines the TCP window scale.
void limit(Acceptor& acceptor, const SocketLimits& limits) {
  if (limits.receive_buffer > 0)
    acceptor.set_option(Acceptor::receive_buffer_size(static_cast<int>(limits.receive_buffer)));
  acceptor.set_option(Acceptor::send_buffer_size(static_cast<int>(limits.send_buffer)));
  acceptor.set_option(UserTimeout(static_cast<int>(limits.unacknowledged.count())));
  // The user timeout also applies to unanswered probes, and is looked at when the next one is due.
  acceptor.set_option(Acceptor::keep_alive(true));
  acceptor.set_option(KeepAliveIdle(static_cast<int>(limits.keep_alive.count())));
  acceptor.set_option(KeepAliveInterval(static_cast<int>(limits.keep_alive.count() / 3)));
}

// The first acceptor binds without SO_REUSEPORT: an address in use is then an error, even if its
// owner would share it. After that, the address is shared with the acceptors that follow.
Acceptor listen(net::io_context& context, const Tcp::endpoint& endpoint, bool is_first,
                const SocketLimits& limits) {
  Acceptor acceptor(context, endpoint.protocol());
  limit(acceptor, limits);
  acceptor.set_option(Acceptor::reuse_address(true));
  acceptor.set_option(ReusePort(!is_first));
  acceptor.bind(endpoint);
  acceptor.set_option(ReusePort(true));
  acceptor.listen(backlog);
  return acceptor;
}

}  // namespace

std::vector<Acceptor> listen_on(const Tcp::endpoint& endpoint,
                                std::span<net::io_context* const> contexts,
                                const SocketLimits& limits) {
  std::vector<Acceptor> acceptors;
  try {
    for (net::io_context* context : contexts) {
      const bool is_first = acceptors.empty();
      const auto address = is_first ? endpoint : acceptors.front().local_endpoint();
      acceptors.push_back(listen(*context, address, is_first, limits));
    }
  } catch (const boost::system::system_error& error) {
    std::ostringstream text;
    text << "cannot listen on " << endpoint << ": " << error.code().message();
    throw std::runtime_error(text.str());
  }
  return acceptors;
}

Task<std::optional<Socket>> accept(Acceptor& acceptor) {
  std::chrono::milliseconds wait = shortest_wait;
  while (acceptor.is_open()) {
    auto [error, socket] = co_await acceptor.async_accept(no_throw);
    if (!error) {
      boost::system::error_code ignored;
      socket.set_option(Tcp::no_delay(true), ignored);
      co_return std::move(socket);
    }
    if (error == net::error::operation_aborted) break;
    Timer pause(acceptor.get_executor(), wait);
    co_await pause.async_wait(no_throw);
    wait = std::min(2 * wait, longest_wait);
  }
  co_return std::nullopt;
}

}  // namespace millrace
