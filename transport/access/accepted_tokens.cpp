// SPDX-License-Identifier: Apache-2.0
#include "transport/access/accepted_tokens.h"

#include "transport/access/presented_token.h"

namespace millrace {
namespace {

std::optional<std::string_view> refusal_by(const TokenList& list, std::string_view token) {
  if (token.empty()) return "a token is required, such as Authorization: Bearer TOKEN";
  if (token.size() > longest_token) return "the token is longer than 4096 bytes";
  if (!list.accepts(token)) return "the token is not accepted";
  return std::nullopt;
}

}  // namespace

std::optional<std::string_view> AcceptedTokens::refusal(std::string_view token) const {
  const List accepted = list();
  return accepted ? refusal_by(*accepted, token) : std::nullopt;
}

std::optional<std::string_view> AcceptedTokens::refusal(const HttpQuery& query) const {
  const List accepted = list();
  if (!accepted) return std::nullopt;
  const auto token = presented_token(query);
  if (token) return refusal_by(*accepted, *token);
  return token.error() == TokenFault::two_fields ? "the request has two fields Authorization"
                                                 : "the request has two different tokens";
}

}  // namespace millrace
