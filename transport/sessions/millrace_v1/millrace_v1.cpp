// SPDX-License-Identifier: Apache-2.0
#include "transport/sessions/millrace_v1/millrace_v1.h"

#include <memory>
#include <utility>

#include "transport/sessions/millrace_v1/conversation.h"

namespace millrace {

namespace {

// A token that continues a stream is a subprotocol, which is never echoed: the log of a proxy does
// not have it.
std::string_view resume_token(const HttpQuery& query) {
  constexpr std::string_view prefix = "resume.";
  for (const std::string_view item : query.items("Sec-WebSocket-Protocol"))
    if (item.starts_with(prefix)) return item.substr(prefix.size());
  return {};
}

// The parameters of the request, with its token.
Result<StreamRequest, RequestError> read_request(const HttpQuery& query) {
  auto request = parse_stream_target(query.target);
  if (!request) return request;
  auto wrong = add_resume_token(*request, resume_token(query), "the subprotocol resume.TOKEN");
  if (wrong) return std::move(*wrong);
  return request;
}

}  // namespace

bool MillraceV1::resumes(const HttpQuery& query) const { return !resume_token(query).empty(); }

std::optional<std::uint32_t> MillraceV1::thread_of(const HttpQuery& query,
                                                   const ClientIdentity& client) const {
  const auto request = read_request(query);
  return request ? admission_.thread_of(*request, client) : std::nullopt;
}

// Errors of the parameters are reported for a valid upgrade, and for a request without one: a
// browser does not show a page the answer to its refused upgrade, so the page asks again with such
// a request.
Result<WebSocketProtocol::Accepted, RequestError> MillraceV1::accept(const HttpQuery& query,
                                                                     SessionScope& scope,
                                                                     const ClientIdentity& client) {
  auto request = read_request(query);
  auto upgrade = parse_upgrade(query, subprotocol);
  if (!upgrade && !is_question(query)) return std::move(upgrade.error());
  if (!request) return std::move(request.error());
  if (!upgrade) {
    auto refused = admission_.refusal(*request, client);
    return std::move(refused ? *refused : upgrade.error());
  }
  auto conversation = std::make_unique<MillraceV1Conversation>(scope, client);
  if (auto refused = conversation->open(admission_, std::move(*request)))
    return std::move(*refused);
  return Accepted{std::move(*upgrade), std::move(conversation)};
}

}  // namespace millrace
