// SPDX-License-Identifier: Apache-2.0
#include "transport/http/client.h"

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>

#include "transport/net/limits.h"

namespace millrace {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;

std::string reason(boost::system::error_code error) {
  if (error == http::error::end_of_stream || error == http::error::partial_message)
    error = net::error::connection_reset;
  const bool of_parser = error.category() == make_error_code(http::error::bad_version).category();
  return of_parser ? "this is no HTTP" : error.message();
}

}  // namespace

Task<Result<int, std::string>> get_status(Executor executor, Tcp::endpoint service,
                                          std::string_view host, std::string_view path) {
  Socket socket(executor);
  const auto [refused] = co_await socket.async_connect(service, no_throw);
  if (refused) co_return reason(refused);

  http::request<http::empty_body> request(http::verb::get, {path.data(), path.size()}, 11);
  request.set(http::field::host, beast::string_view(host.data(), host.size()));
  request.keep_alive(false);
  const auto [unsent, sent] = co_await http::async_write(socket, request, no_throw);
  if (unsent) co_return reason(unsent);

  beast::flat_buffer buffer(max_header_bytes);
  http::response_parser<http::empty_body> parser;
  const auto [error, received] = co_await http::async_read_header(socket, buffer, parser, no_throw);
  if (error) co_return reason(error);
  co_return static_cast<int>(parser.get().result_int());
}

}  // namespace millrace
