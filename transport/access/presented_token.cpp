// SPDX-License-Identifier: Apache-2.0
#include "transport/access/presented_token.h"

#include <algorithm>
#include <boost/beast/core/string.hpp>
#include <vector>

namespace millrace {
namespace {

// Empty for another scheme.
std::string_view token_in(std::string_view authorization) {
  const std::string_view scheme = authorization.substr(0, authorization.find(' '));
  if (!boost::beast::iequals(scheme, "Bearer") && !boost::beast::iequals(scheme, "Token"))
    return {};
  const auto begin = authorization.find_first_not_of(' ', scheme.size());
  return authorization.substr(std::min(begin, authorization.size()));
}

}  // namespace

Result<std::string_view, TokenFault> presented_token(const HttpQuery& query) {
  constexpr std::string_view of_openai = "openai-insecure-api-key.";
  std::vector<std::string_view> tokens;
  const auto fields = query.all("Authorization");
  if (fields.size() > 1) return TokenFault::two_fields;
  for (const std::string_view field : fields) tokens.push_back(token_in(field));
  const auto protocols = query.items("Sec-WebSocket-Protocol");
  for (auto item = protocols.begin(); item != protocols.end(); ++item) {
    if (item->starts_with(of_openai)) tokens.push_back(item->substr(of_openai.size()));
    if (*item == "token" && item + 1 != protocols.end()) tokens.push_back(*++item);
  }
  std::erase(tokens, std::string_view());
  if (tokens.empty()) return std::string_view();
  if (std::ranges::count(tokens, tokens.front()) != std::ssize(tokens))
    return TokenFault::two_tokens;
  return tokens.front();
}

}  // namespace millrace
