// SPDX-License-Identifier: Apache-2.0
#include "transport/http_io.h"

#include <algorithm>
#include <array>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

#include "transport/limits.h"

namespace millrace {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;

std::string text(beast::string_view view) { return {view.data(), view.size()}; }

HttpFault fault_of(boost::system::error_code error) {
  if (error == http::error::header_limit || error == http::error::buffer_overflow)
    return HttpFault::too_long;
  // Of the parser's own errors only this is no fault of the request: it never came.
  const bool of_parser = error.category() == make_error_code(http::error::bad_value).category();
  return of_parser && error != http::error::end_of_stream ? HttpFault::malformed : HttpFault::gone;
}

HttpQuery query_of(const http::request<http::empty_body>& request) {
  HttpQuery query{.method = text(request.method_string()),
                  .target = text(request.target()),
                  .version = request.version(),
                  .fields = {}};
  for (const auto& field : request)
    query.fields.emplace_back(text(field.name_string()), text(field.value()));
  return query;
}

bool has_body(const HttpQuery& query) {
  const auto lengths = query.all("Content-Length");
  return !query.all("Transfer-Encoding").empty() || lengths.size() > 1 ||
         (lengths.size() == 1 && lengths[0] != "0");
}

}  // namespace

std::vector<std::string_view> HttpQuery::all(std::string_view name) const {
  std::vector<std::string_view> values;
  for (const auto& [key, value] : fields)
    if (beast::iequals({key.data(), key.size()}, {name.data(), name.size()}))
      values.push_back(value);
  return values;
}

Task<Result<HttpQuery, HttpFault>> read_query(Socket& socket, std::string& rest) {
  beast::flat_buffer buffer(2 * max_header_bytes);
  http::request_parser<http::empty_body> parser;
  parser.header_limit(max_header_bytes);
  const auto [error, read] = co_await http::async_read_header(socket, buffer, parser, no_throw);
  if (error) co_return fault_of(error);

  auto query = query_of(parser.get());
  if (query.fields.size() > max_header_fields) co_return HttpFault::too_long;
  if (has_body(query)) co_return HttpFault::malformed;
  const auto bytes = buffer.data();
  rest.append(static_cast<const char*>(bytes.data()), bytes.size());
  co_return query;
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

HttpAnswer answer_to(HttpFault fault) {
  if (fault == HttpFault::too_long)
    return {.status = 431, .body = R"({"error":{"message":"the header is too long"}})"};
  return {.status = 400, .body = R"({"error":{"message":"not an HTTP request without a body"}})"};
}

}  // namespace millrace
