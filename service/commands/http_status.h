// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "base/time.h"

namespace millrace {

// The status with which a GET of `url` (http://ADDRESS:PORT/PATH, nothing else) is answered, or why
// there is none within `timeout`. Blocks.
Result<int, std::string> http_status(const std::string& url, Duration timeout);

}  // namespace millrace
