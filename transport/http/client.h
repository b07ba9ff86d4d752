// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "transport/net/net.h"

namespace millrace {

// The status with which a GET of `path` is answered, or why there is none; `host` is the field of
// that name. What the texts refer to outlives it. Time limits are the caller's.
Task<Result<int, std::string>> get_status(Executor executor, Tcp::endpoint service,
                                          std::string_view host, std::string_view path);

}  // namespace millrace
