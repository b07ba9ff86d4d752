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
  std::string target;  // path and query, as sent; of an absolute target only these
  unsigned version = 11;
  HttpFields fields;  // in their order, repeated ones too

  // The values of the fields of that name, in any case of letters.
  std::vector<std::string_view> all(std::string_view name) const;
  std::string_view path() const { return std::string_view(target).substr(0, target.find('?')); }
};

// Why there is no query.
enum class HttpFault : std::uint8_t {
  malformed,  // not HTTP, or with a body
  too_long,   // more header than max_header_bytes or max_header_fields
  gone,       // the connection ended: nobody to answer
};

struct HttpAnswer {
  unsigned status = 200;
  std::string type = "application/json";  // of the content
  std::string body;
  HttpFields fields{};        // further ones
  bool without_body = false;  // only the length of the body is sent
};

// What a request that could not be read is answered; `fault` is not `gone`.
HttpAnswer answer_to(HttpFault fault);

}  // namespace millrace
