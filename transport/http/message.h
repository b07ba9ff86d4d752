// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace {

using HttpFields = std::vector<std::pair<std::string, std::string>>;

// The header of an HTTP/1.x request.
struct HttpQuery {
  std::string method;
  std::string target;     // path and query, as sent, without the host of an absolute target
  unsigned version = 11;  // 10 or 11: HTTP/1.0, HTTP/1.1
  HttpFields fields;      // in the order of the header; names may repeat

  // The values of all fields with this name. Case is ignored.
  std::vector<std::string_view> all(std::string_view name) const;
  // The items of the comma-separated lists in these fields, without spaces around; none is empty.
  std::vector<std::string_view> items(std::string_view name) const;
  std::string_view path() const { return std::string_view(target).substr(0, target.find('?')); }
};

// Why a request could not be read.
enum class HttpFault : std::uint8_t {
  malformed,     // not HTTP, or with a body
  too_long,      // the header exceeds max_header_bytes or max_header_fields
  disconnected,  // the connection ended: no answer can be sent
};

struct HttpAnswer {
  unsigned status = 200;
  std::string type = "application/json";  // Content-Type
  std::string body;
  HttpFields fields{};        // additional header fields
  bool without_body = false;  // only the length of the body is sent
};

// The answer to a request that could not be read. Requires: `fault` is not `disconnected`.
HttpAnswer answer_to(HttpFault fault);

}  // namespace millrace
