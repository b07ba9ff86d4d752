// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "transport/net/net.h"
#include "transport/websocket/client.h"

namespace millrace::load {

// The address for all streams. If the host name has several, the first one that accepts a
// connection; blocks until it is found. On failure, throws std::runtime_error with host and port.
Tcp::endpoint find_endpoint(const ServiceUrl& service);

}  // namespace millrace::load
