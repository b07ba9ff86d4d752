// SPDX-License-Identifier: Apache-2.0
#include "transport/http/reader.h"

#include <algorithm>
#include <boost/beast/core/string.hpp>
#include <string>

#include "transport/net/limits.h"

namespace millrace {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;

constexpr std::size_t at_once = 2048;  // longer than most requests

// Makes the target "http://host/path" the path, and its host the field `Host`, which it overrides
// (RFC 9112, 3.2.2).
void make_relative(HttpQuery& query) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    const auto begin = std::string_view(query.target).substr(0, scheme.size());
    if (!beast::iequals(begin, scheme)) continue;
    const std::size_t end =
        std::min(query.target.find_first_of("/?", scheme.size()), query.target.size());
    const std::string host = query.target.substr(scheme.size(), end - scheme.size());
    query.target.erase(0, end);
    if (!query.target.starts_with('/')) query.target.insert(0, 1, '/');
    for (auto& [name, value] : query.fields)
      if (beast::iequals(name, "Host")) value = host;
    return;
  }
}

HttpQuery query_of(const http::request<http::empty_body>& request) {
  HttpQuery query{.method = request.method_string(),
                  .target = request.target(),
                  .version = request.version(),
                  .fields = {}};
  for (const auto& field : request) query.fields.emplace_back(field.name_string(), field.value());
  make_relative(query);
  return query;
}

bool has_body(const HttpQuery& query) {
  const auto lengths = query.all("Content-Length");
  return !query.all("Transfer-Encoding").empty() || lengths.size() > 1 ||
         (lengths.size() == 1 && lengths[0] != "0");
}

}  // namespace

// The parser's limit is larger than a header can be, because its count depends on how the bytes are
// split. add() checks the exact limit.
HttpReader::HttpReader() : buffer_(2 * max_header_bytes) {
  parser_.header_limit(2 * max_header_bytes);
}

boost::asio::mutable_buffer HttpReader::space() {
  static_assert(at_once <= max_header_bytes);
  return buffer_.prepare(at_once);
}

std::optional<Result<HttpQuery, HttpFault>> HttpReader::add(std::size_t size) {
  buffer_.commit(size);
  received_ += size;
  boost::system::error_code error;
  buffer_.consume(parser_.put(buffer_.data(), error));
  const bool unfinished = error == http::error::need_more;
  if (unfinished && received_ < max_header_bytes) return std::nullopt;
  if (error && !unfinished) return HttpFault::malformed;
  if (unfinished || received_ - buffer_.size() > max_header_bytes) return HttpFault::too_long;

  auto query = query_of(parser_.get());
  if (query.fields.size() > max_header_fields) return HttpFault::too_long;
  if (has_body(query)) return HttpFault::malformed;
  return query;
}

std::string_view HttpReader::rest() const {
  const auto bytes = buffer_.cdata();
  return {static_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace millrace
