// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "transport/net/framed_socket.h"

namespace millrace {

// Longest time between two calls of `meanwhile` during a wait.
inline constexpr std::chrono::milliseconds meanwhile_interval(100);

// Connects to a service at "unix:PATH" or "tcp://HOST:PORT". Waits for a TCP connection, at most 10
// s for all addresses of the host together, and calls `meanwhile` during the wait. Throws
// std::invalid_argument if `url` has neither form, ServiceAbsent if no service listens there,
// WorkerError for other failures, and exceptions of `meanwhile`.
FramedSocket connect_service(const std::string& url, const std::function<void()>& meanwhile);

}  // namespace millrace
