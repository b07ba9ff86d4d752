// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "transport/net/net.h"

namespace millrace {

// The status of the answer to a GET of `path`, or why there is none within `timeout`; `host` is the
// field of that name. Blocks.
Result<int, std::string> get_status(const Tcp::endpoint& service, std::string_view host,
                                    std::string_view path, Duration timeout);

}  // namespace millrace
