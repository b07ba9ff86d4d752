// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "transport/net/net.h"
#include "transport/net/tls/tls_context.h"

namespace millrace {

// A check of the server's certificate for HTTPS.
struct ServerCheck {
  TlsContext context;  // for clients
  std::string name;    // a name or an IP address that the certificate must have
};

// Sends a GET of `path` with the field `Host: host`, over HTTPS with a check, and returns the
// status of the answer, or an error text if none arrived within `timeout`. Blocks.
Result<int, std::string> get_status(const Tcp::endpoint& service, std::string_view host,
                                    std::string_view path, Duration timeout,
                                    const std::optional<ServerCheck>& check = std::nullopt);

}  // namespace millrace
