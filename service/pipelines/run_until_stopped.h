// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "service/log/log.h"
#include "transport/net/net.h"

namespace millrace {

// Runs the context until it is stopped or has no work left. If memory is short, the operation that
// failed ends, its connection with it, and the thread goes on (see EndlessTask). Any other
// exception leaves it. Call it on the thread of `log`.
void run_until_stopped(net::io_context& context, Log& log);

}  // namespace millrace
