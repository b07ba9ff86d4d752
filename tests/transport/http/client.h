// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/write.hpp>
#include <string>

#include "tests/support/run.h"

namespace millrace {

inline Task<Socket> connect_to(Tcp::endpoint endpoint) {
  Socket socket(co_await net::this_coro::executor);
  co_await socket.async_connect(endpoint, net::use_awaitable_t<Executor>{});
  co_return socket;
}

// All bytes until the other side closes; followed by "<reset>" if it resets the connection.
inline Task<std::string> read_all(Socket& socket) {
  std::string all;
  for (;;) {
    std::array<char, 4096> piece;
    const auto [error, size] = co_await socket.async_read_some(net::buffer(piece), no_throw);
    all.append(piece.data(), size);
    if (error) co_return error == net::error::eof ? all : all + "<reset>";
  }
}

// Sends bytes over a new connection and returns the whole answer.
inline Task<std::string> exchange(Tcp::endpoint endpoint, std::string bytes) {
  Socket socket = co_await connect_to(endpoint);
  co_await net::async_write(socket, net::buffer(bytes), no_throw);
  co_return co_await read_all(socket);
}

}  // namespace millrace
