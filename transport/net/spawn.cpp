// SPDX-License-Identifier: Apache-2.0
#include "transport/net/spawn.h"

#include <boost/asio/co_spawn.hpp>
#include <exception>
#include <utility>

namespace millrace {

void spawn(const Executor& executor, Task<> task) {
  net::co_spawn(executor, std::move(task), [](std::exception_ptr error) {
    if (error) std::rethrow_exception(error);
  });
}

}  // namespace millrace
