// SPDX-License-Identifier: Apache-2.0
#include "transport/sessions/millrace_v1/millrace_v1.h"

#include <memory>
#include <utility>

#include "transport/sessions/millrace_v1/conversation.h"

namespace millrace {

// Errors of the parameters are reported for a valid upgrade, and for a request without one: a
// browser does not show a page the answer to its refused upgrade, so the page asks again with such
// a request.
Result<WebSocketProtocol::Accepted, RequestError> MillraceV1::accept(const HttpQuery& query,
                                                                     SessionScope& scope,
                                                                     std::string_view peer) {
  auto request = parse_stream_target(query.target);
  auto upgrade = parse_upgrade(query, subprotocol);
  if (!upgrade && !is_question(query)) return std::move(upgrade.error());
  if (!request) return std::move(request.error());
  if (!upgrade) {
    auto refused = admission_.refusal(*request);
    return std::move(refused ? *refused : upgrade.error());
  }
  auto conversation = std::make_unique<MillraceV1Conversation>(scope, std::string(peer));
  if (auto refused = conversation->open(admission_, std::move(*request)))
    return std::move(*refused);
  return Accepted{std::move(*upgrade), std::move(conversation)};
}

}  // namespace millrace
