// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "load/protocols/client_sink.h"

namespace millrace::load {

// Reads a result over WebSocket that has the exact form of this service: members in the order of
// docs/protocol.md, without spaces. Nullopt for any other text. Reads only its beginning: parsing
// the whole text would need as much CPU time as writing it.
std::optional<ReceivedResult> read_result(std::string_view text);

}  // namespace millrace::load
