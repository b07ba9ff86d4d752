// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "transport/net/net.h"

namespace millrace {

// Sends a GET of `path` with the field `Host: host` and returns the status of the answer, or an
// error text if none arrived within `timeout`. Blocks.
Result<int, std::string> get_status(const Tcp::endpoint& service, std::string_view host,
                                    std::string_view path, Duration timeout);

}  // namespace millrace
