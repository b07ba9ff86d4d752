// SPDX-License-Identifier: Apache-2.0
#include "transport/zeromq/linger.h"

#include <poll.h>

#include <new>

namespace millrace {
namespace {

constexpr std::chrono::seconds linger{1};

void wait_and_write(ZeromqConnections& connections) {
  const Time until = Clock::now() + linger;
  for (;;) {
    std::vector<pollfd> waiting;
    for (auto& [id, connection] : connections)
      if (connection.output.write(connection.socket.native_handle()) == ZmtpOutput::Written::some)
        waiting.push_back({connection.socket.native_handle(), POLLOUT, 0});
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    if (waiting.empty() || left <= 0) return;
    (void)::poll(waiting.data(), waiting.size(), static_cast<int>(left));
  }
}

}  // namespace

void write_remaining(ZeromqConnections& connections) {
  try {
    wait_and_write(connections);
  } catch (const std::bad_alloc&) {  // write once, without waiting
    for (auto& [id, connection] : connections)
      (void)connection.output.write(connection.socket.native_handle());
  }
}

}  // namespace millrace
