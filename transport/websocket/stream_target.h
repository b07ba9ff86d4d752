// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "schemas/client_messages.h"
#include "transport/websocket/request_error.h"

namespace millrace {

// What a client asks for when it opens a stream. What it left out is absent or empty; whether the
// pipeline takes it is for the pipeline to say.
struct StreamRequest {
  std::string pipeline = "default";
  std::string id{};       // a valid name, or empty
  std::string options{};  // a JSON object as it was sent, or empty
  std::optional<std::string> format{};
  std::optional<std::string> channel{};
  std::optional<std::string> chunk{};
  std::optional<double> rate{};  // finite
  std::optional<std::uint32_t> channels{};
  std::optional<std::uint32_t> dim{};
  bool explain = false;  // over WebSocket: results say where their time went
};

// Reads the target of an HTTP request: "/v1/stream?rate=16000".
[[nodiscard]] Result<StreamRequest, RequestError> parse_stream_target(std::string_view target);

// Reads what came as a message, by the same rules.
[[nodiscard]] Result<StreamRequest, RequestError> read_open(const client_protocol::Open& open);

// The other direction of parse_stream_target.
std::string stream_target(const StreamRequest& request);

}  // namespace millrace
