// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "schemas/client_messages.h"
#include "schemas/stream_request.h"
#include "transport/websocket/request_error.h"

namespace millrace {

// The path of streams.
inline constexpr std::string_view stream_path = "/v1/stream";

// Parses the parameters of a target, "/v1/stream?rate=16000", whatever its path is.
[[nodiscard]] Result<StreamRequest, RequestError> parse_stream_target(std::string_view target);

// Checks the message `Open` by the same rules.
[[nodiscard]] Result<StreamRequest, RequestError> read_open(const client_protocol::Open& open);

// Adds the token with which a client continues a stream; empty: it has shown none. Returns the
// error of a request that has only a part of what a resumption needs. `shown` names where a client
// shows the token, for the error.
[[nodiscard]] std::optional<RequestError> add_resume_token(StreamRequest& request,
                                                           std::string_view token,
                                                           std::string_view shown);

// Appends a parameter to a target, percent-encoded.
void append_parameter(std::string& target, std::string_view name, std::string_view value);

// The inverse of parse_stream_target().
std::string stream_target(const StreamRequest& request);

}  // namespace millrace
