// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/result.h"
#include "transport/addresses/proxy_header.h"
#include "transport/net/net.h"

namespace millrace {

// Reads the header of the PROXY protocol if the connection begins with one, and no byte otherwise.
// Returns the client that it names, as ProxyHeader::client(). A connection that ends before is one
// without a header: the next read notices it. Has no time limit: the caller closes the socket to
// end it. `socket` does not block, and outlives the task.
Task<Result<std::optional<Tcp::endpoint>, ProxyHeader::Fault>> read_proxy_header(Socket& socket);

}  // namespace millrace
