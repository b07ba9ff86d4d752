// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "transport/net/net.h"

namespace millrace {

// Runs a task on `executor`; its result is not waited for. An exception that the task throws leaves
// the run of its io_context.
void spawn(const Executor& executor, Task<> task);

}  // namespace millrace
