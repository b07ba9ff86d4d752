// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>

#include "base/time.h"

// What both ends of the worker protocol keep to (docs/worker_protocol.md). Its version and its
// messages are in schemas/worker_messages.h.
namespace millrace::worker_protocol {

// A heartbeat goes out when nothing else did for this long, and a peer of which nothing was heard
// for this long is lost.
struct Heartbeats {
  Duration interval = std::chrono::seconds(2);
  Duration silence = std::chrono::seconds(6);
};

// Hello to Welcome or Refused.
inline constexpr Duration handshake_limit = std::chrono::seconds(10);

// An answer is due this long after hand-over or after the answer before it, whichever is later;
// the first has longer, since models compile.
inline constexpr Duration answer_due = std::chrono::seconds(10);
inline constexpr Duration first_answer_due = std::chrono::seconds(120);

// Longer messages end the connection. To a worker, a message may hold a tensor.
inline constexpr std::size_t max_hello = std::size_t{64} << 10;  // until Hello is accepted
inline constexpr std::size_t max_to_service = std::size_t{64} << 20;
inline constexpr std::size_t max_to_worker = std::size_t{1} << 30;

}  // namespace millrace::worker_protocol
