// SPDX-License-Identifier: Apache-2.0
#include "transport/http/message.h"

#include <algorithm>
#include <boost/beast/core/string.hpp>

namespace millrace {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

}  // namespace

std::vector<std::string_view> HttpQuery::all(std::string_view name) const {
  std::vector<std::string_view> values;
  for (const auto& [key, value] : fields)
    if (boost::beast::iequals(key, name)) values.push_back(value);
  return values;
}

std::vector<std::string_view> HttpQuery::items(std::string_view name) const {
  std::vector<std::string_view> items;
  for (std::string_view list : all(name)) {
    while (!list.empty()) {
      const auto item = list.substr(0, list.find(','));
      if (!trimmed(item).empty()) items.push_back(trimmed(item));
      list.remove_prefix(std::min(list.size(), item.size() + 1));
    }
  }
  return items;
}

HttpAnswer answer_to(HttpFault fault) {
  if (fault == HttpFault::too_long)
    return {.status = 431, .body = R"({"error":{"message":"the header is too long"}})"};
  return {.status = 400,
          .body = R"({"error":{"message":"must be a whole HTTP request without a body"}})"};
}

}  // namespace millrace
