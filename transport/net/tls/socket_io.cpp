// SPDX-License-Identifier: Apache-2.0
#include "transport/net/tls/socket_io.h"

#include <tuple>

namespace millrace {

using boost::system::error_code;

Task<std::pair<error_code, std::size_t>> read_some(StreamSocket& socket, net::mutable_buffer into) {
  for (;;) {
    error_code error;
    const std::size_t count = socket.read_some(into, error);
    if (error != net::error::would_block) co_return std::pair(error, count);
    std::tie(error) = co_await socket.tcp().async_wait(socket.read_awaits(), no_throw);
    if (error) co_return std::pair(error, count);
  }
}

Task<error_code> write_all(StreamSocket& socket, std::string_view bytes) {
  while (!bytes.empty()) {
    error_code error;
    bytes.remove_prefix(socket.write_some({net::buffer(bytes), net::const_buffer()}, error));
    if (error == net::error::would_block)
      std::tie(error) = co_await socket.tcp().async_wait(socket.write_awaits(), no_throw);
    if (error) co_return error;
  }
  co_return error_code();
}

Task<error_code> shake_hands(StreamSocket& socket, Turns::Turn& turn) {
  if (!socket.tls()) co_return error_code();
  auto awaited = Socket::wait_read;
  for (;;) {
    const auto [lost] = co_await socket.tcp().async_wait(awaited, no_throw);
    if (lost) co_return lost;
    co_await turn.next();
    if (!socket.tcp().is_open()) co_return net::error::operation_aborted;
    const error_code error = socket.tls()->handshake();
    if (error != net::error::would_block) co_return error;
    awaited = socket.read_awaits();
  }
}

}  // namespace millrace
