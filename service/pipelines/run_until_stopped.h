// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "service/log/log.h"
#include "transport/net/net.h"

namespace millrace {

// Runs the context until it is stopped or has no work left. If an allocation fails, the operation
// that needed it ends, and its connection with it; the thread continues (see EndlessTask). Throws
// any other exception of an operation. Call it on the thread of `log`.
void run_until_stopped(net::io_context& context, Log& log);

}  // namespace millrace
