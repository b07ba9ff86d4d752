// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "transport/http/message.h"
#include "transport/websocket/request_error.h"

namespace millrace {

inline constexpr std::string_view subprotocol = "millrace.v1";

// The parts of an upgrade request that the WebSocket handshake needs.
struct Upgrade {
  std::string key;                 // Sec-WebSocket-Key
  std::string_view subprotocol{};  // for the answer; empty if the client listed none
};

// The web pages that may open streams. Clients that send no `Origin` are always allowed.
struct PageRules {
  bool loopback = false;                      // the listener is on loopback: check `Host`
  std::span<const std::string> origins = {};  // allowed origins of pages, besides its own one
};

// Refuses requests with a method other than GET and HEAD, and requests from pages that are not
// allowed. The request's own origin is allowed (is_from_own_page()): no other site can have it, and
// some clients that are no pages send it. Nullopt if the request is allowed.
[[nodiscard]] std::optional<RequestError> refuse_page(const HttpQuery& query,
                                                      const PageRules& rules = {});

// True if the request has nothing of an upgrade: it comes from a health check, a scan of ports or a
// page that asks, and not from a client whose proxy has removed `Upgrade` and `Connection`.
[[nodiscard]] bool is_question(const HttpQuery& query);

// Reads a request for a WebSocket. If the client lists subprotocols, `supported` must be one of
// them; it outlives the result.
[[nodiscard]] Result<Upgrade, RequestError> parse_upgrade(const HttpQuery& query,
                                                          std::string_view supported);

// The HTTP answer to a refused request.
HttpAnswer answer_to(const RequestError& error);

}  // namespace millrace
