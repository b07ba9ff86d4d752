// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <new>

#include "tests/support/allocations.h"
#include "transport/net/net.h"

namespace millrace::test {

// A client that connects to a server in `context`. Meanwhile the server's n-th allocation fails.
inline Socket connect_while_failing(net::io_context& context, const Tcp::endpoint& server,
                                    std::size_t nth) {
  Socket client(context);
  client.connect(server);
  const FailingAllocation failing(nth);
  for (int i = 0; i < 3; ++i) {
    try {
      context.restart();
      context.poll();
    } catch (const std::bad_alloc&) {
    }
  }
  return client;
}

}  // namespace millrace::test
