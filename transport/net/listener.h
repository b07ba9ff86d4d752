// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "transport/net/limits.h"
#include "transport/net/net.h"

namespace millrace {

// One address, listened to by several io threads: an acceptor for each context, among which the
// kernel deals the connections. Port 0 is any free one, the same for all. Throws
// std::runtime_error, whose text names the address, if another socket listens there.
std::vector<Acceptor> listen_on(const Tcp::endpoint& endpoint,
                                std::span<net::io_context* const> contexts,
                                const SocketLimits& limits = {});

// The next connection, its small packets not delayed. Nothing when the acceptor was closed. Where
// the process has no descriptor left it tries again, less and less often.
Task<std::optional<Socket>> accept(Acceptor& acceptor);

}  // namespace millrace
