// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unordered_map>

#include "transport/zeromq/connection.h"

namespace millrace {

using ZeromqConnections = std::unordered_map<ZeromqPeer, ZeromqConnection>;

// Writes the unwritten messages of the connections. Blocks for up to 1 s.
void write_remaining(ZeromqConnections& connections);

}  // namespace millrace
