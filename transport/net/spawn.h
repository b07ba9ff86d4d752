// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "transport/net/net.h"

namespace millrace {

// Starts a task on `executor` and does not wait for it. An exception of the task leaves
// io_context::run().
void spawn(const Executor& executor, Task<> task);

}  // namespace millrace
