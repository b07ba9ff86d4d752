// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/budget.h"
#include "transport/http/page_file.h"

namespace millrace {

// Which connections of clients are accepted at all: one for all listeners of a process.
//
// Thread-safe.
struct ClientGate {
  Budget sockets;                            // of clients, those before their upgrade among them
  const std::vector<std::string> origins{};  // of the pages that may open streams
  const std::span<const PageFile> page{};    // which is served, and may open streams; empty: none
  // The most connections over ZeroMQ. Relaxed: it guards nothing.
  std::atomic<std::uint64_t> zeromq_connections = 10'000;
  // While memory is short every new connection is refused before anything is read from it.
  std::atomic<bool> memory_short = false;  // relaxed: it guards nothing
};

}  // namespace millrace
