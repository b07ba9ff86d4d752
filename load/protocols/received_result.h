// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "base/result_head.h"
#include "load/protocols/client_sink.h"

namespace millrace::load {

// Reads a result over WebSocket that has the exact form of this service: members in the order of
// docs/protocol.md, without spaces. Nullopt for any other text. Reads only its beginning: parsing
// the whole text would need as much CPU time as writing it.
std::optional<ReceivedResult> read_result(std::string_view text);

// The same for a client that resumes: a result has its number at its end.
struct NumberedResult {
  ReceivedResult result;
  MessageNumber number;
};
std::optional<NumberedResult> read_numbered_result(std::string_view text);

}  // namespace millrace::load
