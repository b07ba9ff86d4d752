// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "load/clients/client_door.h"

namespace millrace::load {

// What a result over WebSocket says of its row, if the text is one as our service writes it: its
// members in the order of docs/protocol.md, without spaces. A look at the front instead of the
// parse of it all, which would cost as much as the service's writing.
std::optional<Told> read_told(std::string_view text);

}  // namespace millrace::load
