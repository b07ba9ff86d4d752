// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "transport/net/framed_socket.h"

namespace millrace {

// How often a caller that waits to be attached is called back, at least.
inline constexpr std::chrono::milliseconds meanwhile_interval(100);

// Connects to a service at "unix:PATH" or "tcp://HOST:PORT". A TCP connection is waited for, at
// most 10 s for all addresses of the host, and `meanwhile` is called. Throws
// std::invalid_argument if it is no such url, ServiceAbsent if no service listens there,
// WorkerError, and what `meanwhile` throws.
FramedSocket connect_service(const std::string& url, const std::function<void()>& meanwhile);

}  // namespace millrace
