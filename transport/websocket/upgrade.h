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

// What the WebSocket handshake needs of an upgrade request.
struct Upgrade {
  std::string key;                 // Sec-WebSocket-Key
  std::string_view subprotocol{};  // which the client listed, to be named in the answer; or empty
};

// Which pages of browsers may open streams; clients that are no pages always may.
struct PageRules {
  bool loopback = false;                      // the listener is: only loopback hosts are answered
  std::span<const std::string> origins = {};  // of the pages
  bool own_page = false;                      // those that this listener serves may
};

// Refuses requests by other methods than GET, and from pages that may not open streams.
[[nodiscard]] std::optional<RequestError> refuse_page(const HttpQuery& query,
                                                      const PageRules& rules = {});

// Reads the request for a WebSocket. `spoken` is the only subprotocol that the client may name; it
// outlives the result.
[[nodiscard]] Result<Upgrade, RequestError> parse_upgrade(const HttpQuery& query,
                                                          std::string_view spoken);

// The HTTP answer to a refused request.
HttpAnswer answer_to(const RequestError& error);

}  // namespace millrace
