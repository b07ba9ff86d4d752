// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "transport/net/limits.h"
#include "transport/net/net.h"

namespace millrace {

// Listens on one address with an acceptor for each context (io thread). The kernel distributes the
// connections among them. Port 0 means any free port, the same for all. Throws std::runtime_error
// that names the address, for example if another socket listens there.
std::vector<Acceptor> listen_on(const Tcp::endpoint& endpoint,
                                std::span<net::io_context* const> contexts,
                                const SocketLimits& limits = {});

// The next connection, with TCP_NODELAY set; nullopt if the acceptor was closed. If accepting fails
// (no file descriptor is free), it tries again after a growing pause of 10 ms to 1 s.
Task<std::optional<Socket>> accept(Acceptor& acceptor);

}  // namespace millrace
