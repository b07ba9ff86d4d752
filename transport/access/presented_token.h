// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "transport/http/message.h"

namespace millrace {

enum class TokenFault : std::uint8_t { two_fields, two_tokens };

// The token that a request presents, as a view of the request; empty if it has none. A token is one
// of these, and never a part of the URL:
//
//   Authorization: Bearer T
//   Authorization: Token T
//   Sec-WebSocket-Protocol: …, openai-insecure-api-key.T, …
//   Sec-WebSocket-Protocol: …, token, T, …
//
// Two fields `Authorization`, or two different tokens, are an error.
Result<std::string_view, TokenFault> presented_token(const HttpQuery& query);

}  // namespace millrace
