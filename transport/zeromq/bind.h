// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "transport/net/net.h"

namespace millrace {

// Listens on "tcp://ADDRESS:PORT". An IPv6 address is in brackets; port 0 means any free port.
// Throws std::runtime_error that names the endpoint.
Acceptor listen_on_zeromq(const Executor& executor, const std::string& endpoint);

}  // namespace millrace
