// SPDX-License-Identifier: Apache-2.0
#include "transport/http_io.h"

#include <algorithm>
#include <array>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

#include "transport/http_reader.h"

namespace millrace {

namespace http = boost::beast::http;

Task<Result<HttpQuery, HttpFault>> read_query(Socket& socket, std::string& rest) {
  HttpReader reader;
  for (;;) {
    const auto space = reader.space();
    const auto [error, size] = co_await socket.async_read_some(space, no_throw);
    if (error) co_return error == net::error::eof ? reader.end() : HttpFault::gone;
    auto query = reader.add(size);
    if (!query) continue;
    rest.append(reader.rest());
    co_return std::move(*query);
  }
}

Task<> answer_and_close(Socket& socket, HttpAnswer answer) {
  http::response<http::string_body> response(http::int_to_status(answer.status), 11);
  response.set(http::field::content_type, answer.type);
  for (const auto& [name, value] : answer.fields) response.set(name, value);
  response.keep_alive(false);
  response.body() = std::move(answer.body);
  response.prepare_payload();
  const auto [error, written] = co_await http::async_write(socket, response, no_throw);
  if (error) co_return;

  boost::system::error_code ignored;
  socket.shutdown(Socket::shutdown_send, ignored);
  std::array<char, 1024> unread;
  std::size_t budget = 64 * unread.size();
  while (budget > 0) {
    const auto [end, size] = co_await socket.async_read_some(net::buffer(unread), no_throw);
    if (end) co_return;
    budget -= std::min(budget, size);
  }
}

}  // namespace millrace
