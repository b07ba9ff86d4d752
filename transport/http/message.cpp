// SPDX-License-Identifier: Apache-2.0
#include "transport/http/message.h"

#include <boost/beast/core/string.hpp>

namespace millrace {

std::vector<std::string_view> HttpQuery::all(std::string_view name) const {
  std::vector<std::string_view> values;
  for (const auto& [key, value] : fields)
    if (boost::beast::iequals(key, name)) values.push_back(value);
  return values;
}

HttpAnswer answer_to(HttpFault fault) {
  if (fault == HttpFault::too_long)
    return {.status = 431, .body = R"({"error":{"message":"the header is too long"}})"};
  return {.status = 400,
          .body = R"({"error":{"message":"must be a whole HTTP request without a body"}})"};
}

}  // namespace millrace
