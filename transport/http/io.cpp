// SPDX-License-Identifier: Apache-2.0
#include "transport/http/io.h"

#include <algorithm>
#include <array>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/write.hpp>
#include <new>
#include <sstream>
#include <utility>

#include "transport/http/reader.h"
#include "transport/net/tls/socket_io.h"

namespace millrace {

namespace http = boost::beast::http;

Task<Result<HttpQuery, HttpFault>> read_query(StreamSocket& socket, std::string& rest) {
  HttpReader reader;
  for (;;) {
    const auto space = reader.space();
    const auto [error, size] = co_await read_some(socket, space);
    if (error) co_return error == net::error::eof ? reader.end() : HttpFault::disconnected;
    auto query = reader.add(size);
    if (!query) continue;
    rest.append(reader.rest());
    co_return std::move(*query);
  }
}

namespace {

std::string text_of(const HttpAnswer& answer) {
  http::response<http::empty_body> response(http::int_to_status(answer.status), 11);
  response.set(http::field::content_type, answer.type);
  response.set("X-Content-Type-Options", "nosniff");
  for (const auto& [name, value] : answer.fields) response.set(name, value);
  response.keep_alive(false);
  response.content_length(answer.body.size());
  std::ostringstream head;
  head << response;
  if (!head) throw std::bad_alloc();  // a stream swallows the exception
  std::string text = std::move(head).str();
  if (!answer.without_body) text += answer.body;
  return text;
}

}  // namespace

void answer_at_once(StreamSocket& socket, HttpAnswer answer) {
  boost::system::error_code ignored;
  // Reads the request if it has arrived: with unread bytes, the close would reset the connection.
  std::array<char, 4096> unread;
  socket.read_some(net::buffer(unread), ignored);
  const std::string text = text_of(answer);
  socket.write_some({net::buffer(text), net::const_buffer()}, ignored);
  socket.shutdown_send();
}

Task<> write_answer(StreamSocket& socket, HttpAnswer answer) {
  const std::string text = text_of(answer);
  co_await write_all(socket, text);
}

Task<> wait_for_end(StreamSocket& socket) {
  socket.shutdown_send();
  std::array<char, 1024> unread;
  std::size_t budget = 64 * unread.size();
  while (budget > 0) {
    const auto [end, size] = co_await socket.tcp().async_read_some(net::buffer(unread), no_throw);
    if (end) co_return;
    budget -= std::min(budget, size);
  }
}

Task<> answer_and_close(StreamSocket& socket, HttpAnswer answer) {
  co_await write_answer(socket, std::move(answer));
  co_await wait_for_end(socket);
}

}  // namespace millrace
