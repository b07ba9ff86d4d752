// SPDX-License-Identifier: Apache-2.0
#include "transport/http/client.h"

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>

#include "transport/net/spawn.h"

namespace millrace {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;

constexpr std::size_t longest_answer = 8 * 1024;  // bytes of its header

using Request = http::request<http::empty_body>;
using Status = Result<int, boost::system::error_code>;

Task<Status> ask(Socket& socket, Tcp::endpoint service, const Request& request) {
  const auto [refused] = co_await socket.async_connect(service, no_throw);
  if (refused) co_return refused;
  const auto [unsent, sent] = co_await http::async_write(socket, request, no_throw);
  if (unsent) co_return unsent;
  beast::flat_buffer buffer(longest_answer);
  http::response_parser<http::empty_body> parser;
  const auto [error, received] = co_await http::async_read_header(socket, buffer, parser, no_throw);
  if (error) co_return error;
  co_return static_cast<int>(parser.get().result_int());
}

Task<> ask_until(Timer& late, Socket& socket, Tcp::endpoint service, const Request& request,
                 Status& status) {
  status = co_await ask(socket, service, request);
  late.cancel();
}

std::string reason(boost::system::error_code error) {
  if (error == http::error::end_of_stream || error == http::error::partial_message)
    error = net::error::connection_reset;
  const bool of_parser = error.category() == make_error_code(http::error::bad_version).category();
  return of_parser ? "the answer is not HTTP" : error.message();
}

}  // namespace

Result<int, std::string> get_status(const Tcp::endpoint& service, std::string_view host,
                                    std::string_view path, Duration timeout) {
  Request request(http::verb::get, path, 11);
  request.set(http::field::host, host);
  request.keep_alive(false);

  net::io_context context(1);
  Socket socket(context.get_executor());
  Timer late(context.get_executor(), timeout);
  bool is_late = false;
  late.async_wait([&](boost::system::error_code cancelled) {
    if (cancelled) return;
    is_late = true;
    socket.close();
  });
  Status status = boost::system::error_code();
  spawn(context.get_executor(), ask_until(late, socket, service, request, status));
  context.run();
  if (status) return *status;
  return reason(is_late ? make_error_code(net::error::timed_out) : status.error());
}

}  // namespace millrace
