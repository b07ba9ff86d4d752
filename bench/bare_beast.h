// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "bench/bare_arrivals.h"

namespace millrace::bench {

// What a program of Boost.Beast at its fastest can do with the messages of clients: one thread,
// concrete executors, no timeouts, no compression; each message is read and dropped. Confined to
// one thread.
class BareBeast {
 public:
  // On a free port of loopback if `port` is 0. Throws boost::system::system_error.
  BareBeast(std::uint16_t port, BareArrivals& arrivals);
  ~BareBeast();

  std::uint16_t port() const;
  // Returns at SIGTERM.
  void run();

 private:
  class Server;
  std::unique_ptr<Server> server_;
};

}  // namespace millrace::bench
