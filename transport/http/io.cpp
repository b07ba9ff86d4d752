// SPDX-License-Identifier: Apache-2.0
#include "transport/http/io.h"

#include <algorithm>
#include <array>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

#include "transport/http/reader.h"

namespace millrace {

namespace http = boost::beast::http;

Task<Result<HttpQuery, HttpFault>> read_query(Socket& socket, std::string& rest) {
  HttpReader reader;
  for (;;) {
    const auto space = reader.space();
    const auto [error, size] = co_await socket.async_read_some(space, no_throw);
    if (error) co_return error == net::error::eof ? reader.end() : HttpFault::disconnected;
    auto query = reader.add(size);
    if (!query) continue;
    rest.append(reader.rest());
    co_return std::move(*query);
  }
}

namespace {

http::response<http::string_body> response_of(HttpAnswer answer) {
  http::response<http::string_body> response(http::int_to_status(answer.status), 11);
  response.set(http::field::content_type, answer.type);
  response.set("X-Content-Type-Options", "nosniff");
  for (const auto& [name, value] : answer.fields) response.set(name, value);
  response.keep_alive(false);
  response.content_length(answer.body.size());
  if (!answer.without_body) response.body() = std::move(answer.body);
  return response;
}

}  // namespace

void answer_at_once(Socket& socket, HttpAnswer answer) {
  boost::system::error_code ignored;
  socket.non_blocking(true, ignored);
  // Reads the request if it has arrived: with unread bytes, the close would reset the connection.
  std::array<char, 4096> unread;
  socket.read_some(net::buffer(unread), ignored);
  const auto response = response_of(std::move(answer));
  http::write(socket, response, ignored);
  socket.shutdown(Socket::shutdown_send, ignored);
}

Task<> write_answer(Socket& socket, HttpAnswer answer) {
  const auto response = response_of(std::move(answer));
  co_await http::async_write(socket, response, no_throw);
}

Task<> wait_for_end(Socket& socket) {
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

Task<> answer_and_close(Socket& socket, HttpAnswer answer) {
  co_await write_answer(socket, std::move(answer));
  co_await wait_for_end(socket);
}

}  // namespace millrace
