// SPDX-License-Identifier: Apache-2.0
#include "transport/http/client.h"

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <memory>
#include <utility>

#include "transport/net/spawn.h"
#include "transport/net/tls/socket_io.h"
#include "transport/net/tls/stream_socket.h"

namespace millrace {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;
using Status = Result<int, error_code>;

// The parser limits the header to 8 KiB.
Task<Status> read_status(StreamSocket& socket) {
  beast::flat_buffer buffer;
  http::response_parser<http::empty_body> parser;
  while (!parser.is_header_done()) {
    const auto space = buffer.prepare(1024);
    const auto [failed, size] = co_await read_some(socket, space);
    if (failed) co_return failed;
    buffer.commit(size);
    error_code error;
    while (buffer.size() > 0 && !parser.is_header_done() && !error)
      buffer.consume(parser.put(buffer.data(), error));
    if (error && error != http::error::need_more) co_return error;
  }
  co_return static_cast<int>(parser.get().result_int());
}

Task<Status> ask(StreamSocket& socket, Tcp::endpoint service, std::string_view request) {
  const auto [refused] = co_await socket.tcp().async_connect(service, no_throw);
  if (refused) co_return refused;
  const auto unsent = co_await write_all(socket, request);
  if (unsent) co_return unsent;
  co_return co_await read_status(socket);
}

Task<> ask_until(Timer& late, StreamSocket& socket, Tcp::endpoint service, std::string_view request,
                 Status& status) {
  status = co_await ask(socket, service, request);
  late.cancel();
}

std::string reason(const StreamSocket& socket, error_code error) {
  if (socket.tls() && !socket.tls()->failure().empty()) return socket.tls()->failure();
  if (error == net::error::eof) error = net::error::connection_reset;
  const bool of_parser = error.category() == make_error_code(http::error::bad_version).category();
  return of_parser ? "the answer is not HTTP" : error.message();
}

StreamSocket socket_to(const Tcp::endpoint& service, net::io_context& context,
                       const std::optional<ServerCheck>& check) {
  Socket socket(context, service.protocol());
  auto tls = check
                 ? std::make_unique<TlsSession>(check->context, socket.native_handle(), check->name)
                 : nullptr;
  return {std::move(socket), std::move(tls)};
}

}  // namespace

Result<int, std::string> get_status(const Tcp::endpoint& service, std::string_view host,
                                    std::string_view path, Duration timeout,
                                    const std::optional<ServerCheck>& check) {
  std::string request = "GET ";
  request.append(path).append(" HTTP/1.1\r\nHost: ").append(host);
  request.append("\r\nConnection: close\r\n\r\n");

  net::io_context context(1);
  StreamSocket socket = socket_to(service, context, check);
  Timer late(context.get_executor(), timeout);
  bool is_late = false;
  late.async_wait([&](error_code cancelled) {
    if (cancelled) return;
    is_late = true;
    socket.close();
  });
  Status status = error_code();
  spawn(context.get_executor(), ask_until(late, socket, service, request, status));
  context.run();
  if (status) return *status;
  return is_late ? make_error_code(net::error::timed_out).message()
                 : reason(socket, status.error());
}

}  // namespace millrace
