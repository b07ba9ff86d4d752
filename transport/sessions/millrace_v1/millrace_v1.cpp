// SPDX-License-Identifier: Apache-2.0
#include "transport/sessions/millrace_v1/millrace_v1.h"

#include <memory>
#include <utility>

#include "transport/sessions/millrace_v1/conversation.h"
#include "transport/websocket/stream_target.h"

namespace millrace {

// A path that this protocol does not have is 404, upgrade or not. Wrong parameters are an error
// only of a proper upgrade.
Result<WebSocketProtocol::Accepted, RequestError> MillraceV1::accept(const HttpQuery& query,
                                                                     SessionScope& scope,
                                                                     std::string_view peer) {
  auto request = parse_stream_target(query.target);
  if (!request && request.error().status == 404) return std::move(request.error());
  auto upgrade = parse_upgrade(query, subprotocol);
  if (!upgrade) return std::move(upgrade.error());
  if (!request) return std::move(request.error());
  auto conversation = std::make_unique<MillraceV1Conversation>(scope, std::string(peer));
  if (auto refused = conversation->open(admission_, std::move(*request)))
    return std::move(*refused);
  return Accepted{std::move(*upgrade), std::move(conversation)};
}

}  // namespace millrace
