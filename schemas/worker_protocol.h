// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>

#include "base/time.h"

// Times and limits that both ends of the worker protocol use (docs/worker_protocol.md). Its version
// and its messages are in schemas/worker_messages.h.
namespace millrace::worker_protocol {

// When each end sends a heartbeat, and when it treats its peer as lost.
struct Heartbeats {
  Duration interval = std::chrono::seconds(2);  // time without a sent message before a heartbeat
  Duration silence = std::chrono::seconds(6);   // time without a received message before the loss
};

// From Hello to Welcome or Refused.
inline constexpr Duration handshake_limit = std::chrono::seconds(10);

// Bytes of a message; a longer one ends the connection. A message to a worker may have a tensor.
inline constexpr std::size_t max_hello = std::size_t{64} << 10;  // until Hello is accepted
inline constexpr std::size_t max_to_service = std::size_t{64} << 20;
inline constexpr std::size_t max_to_worker = std::size_t{1} << 30;

}  // namespace millrace::worker_protocol
