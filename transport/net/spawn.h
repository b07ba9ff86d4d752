// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <exception>
#include <utility>

#include "transport/net/net.h"

namespace millrace {

// Runs a task that nobody waits for on `executor`. Tasks that can fail catch what they know; what
// one throws all the same leaves the run of its io_context.
inline void spawn(const Executor& executor, Task<> task) {
  net::co_spawn(executor, std::move(task), [](std::exception_ptr error) {
    if (error) std::rethrow_exception(error);
  });
}

}  // namespace millrace
