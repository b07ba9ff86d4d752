// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "transport/net/net.h"
#include "transport/websocket/client.h"

namespace millrace::load {

// The address that all streams go to. Of several that a name has, the first at which somebody
// listens; blocks until that is known. Throws std::runtime_error, with host and port, where there
// is none.
Tcp::endpoint find_place(const ServiceUrl& service);

}  // namespace millrace::load
