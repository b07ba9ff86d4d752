// SPDX-License-Identifier: Apache-2.0
#include "transport/addresses/read_proxy_header.h"

#include <array>
#include <boost/asio/read.hpp>

namespace millrace {

Task<Result<std::optional<Tcp::endpoint>, ProxyHeader::Fault>> read_proxy_header(Socket& socket) {
  using Client = std::optional<Tcp::endpoint>;
  const auto [failed] = co_await socket.async_wait(Socket::wait_read, no_throw);
  if (failed) co_return Client();
  std::byte first{};
  boost::system::error_code error;
  socket.receive(net::buffer(&first, 1), Socket::message_peek, error);
  if (error || first != ProxyHeader::first_byte) co_return Client();
  std::array<std::byte, ProxyHeader::head_bytes + ProxyHeader::most_rest_bytes> header;
  const auto head = std::span(header).first(ProxyHeader::head_bytes);
  const auto [no_head, read] = co_await net::async_read(socket, net::buffer(head), no_throw);
  if (no_head) co_return ProxyHeader::Fault::malformed;
  const auto size = ProxyHeader::rest_bytes(head);
  if (!size) co_return size.error();
  const auto rest = std::span(header).subspan(ProxyHeader::head_bytes, *size);
  const auto [no_rest, more] = co_await net::async_read(socket, net::buffer(rest), no_throw);
  if (no_rest) co_return ProxyHeader::Fault::malformed;
  co_return ProxyHeader::client(head, rest);
}

}  // namespace millrace
