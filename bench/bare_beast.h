// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "bench/bare_arrivals.h"

namespace millrace::bench {

// The fastest server of Boost.Beast for the clients of docs/protocol.md: one thread, concrete
// executors, no timeouts, no compression. Reads and drops each message. Confined to one thread.
class BareBeast {
 public:
  // Listens on `port` of loopback; 0: a free port. Throws boost::system::system_error.
  BareBeast(std::uint16_t port, BareArrivals& arrivals);
  ~BareBeast();

  std::uint16_t port() const;
  // Serves until SIGTERM.
  void run();

 private:
  class Server;
  std::unique_ptr<Server> server_;
};

}  // namespace millrace::bench
