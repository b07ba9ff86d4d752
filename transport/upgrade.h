// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "transport/http_message.h"
#include "transport/request_error.h"
#include "transport/stream_request.h"

namespace millrace {

inline constexpr std::string_view subprotocol = "millrace.v1";

// What the WebSocket handshake needs of an upgrade request.
struct Upgrade {
  std::string key;           // Sec-WebSocket-Key
  bool subprotocol = false;  // the client listed ours
};

struct StreamUpgrade {
  Upgrade upgrade;
  StreamRequest stream;
};

// Which pages of browsers may open streams; clients that are no pages always may.
struct PageRules {
  bool loopback = false;                      // the listener is: only loopback hosts are answered
  std::span<const std::string> origins = {};  // of the pages
  bool own_page = false;                      // those that this listener serves may
};

// Reads an HTTP request that should open a stream, or says how it is refused.
[[nodiscard]] Result<StreamUpgrade, RequestError> parse_upgrade(const HttpQuery& query,
                                                                const PageRules& rules = {});

// The HTTP answer to a refused request.
HttpAnswer answer_to(const RequestError& error);

}  // namespace millrace
