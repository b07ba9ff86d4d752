// SPDX-License-Identifier: Apache-2.0
#pragma once

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

// Appends a parameter to a target, percent-encoded.
void append_parameter(std::string& target, std::string_view name, std::string_view value);

// The inverse of parse_stream_target().
std::string stream_target(const StreamRequest& request);

}  // namespace millrace
