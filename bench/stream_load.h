// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/packets.h"
#include "bench/schedule.h"
#include "transport/client.h"

namespace millrace::bench {

// The clients of the benchmark: all streams of a schedule on the thread that calls run().
//
// Confined to one thread.
class StreamLoad {
 public:
  struct Sent {
    std::vector<std::uint32_t> packets;  // by stream
    std::uint32_t broken = 0;            // streams that the service did not close as agreed
    std::string why;                     // of one of them
  };

  // Both outlive it. It starts the schedule once every stream is open.
  StreamLoad(const Packets& packets, Schedule& schedule);

  // Opens, sends, and waits until the service has closed every stream. `at_begin` and `at_end` are
  // called at the two ends of the time that counts.
  Sent run(const ServiceUrl& service, std::function<void()> at_begin, std::function<void()> at_end);

 private:
  Task<> stream(ServiceUrl service, std::uint32_t stream);
  Task<> send(Connection& connection, std::uint32_t stream);
  Task<> receive(Connection& connection, std::uint32_t stream);
  Task<> watch(std::function<void()> at_begin, std::function<void()> at_end);
  Task<> all_open();
  void broken(std::string why);

  const Packets& packets_;
  Schedule& schedule_;
  net::io_context context_{1};
  Timer gate_{context_.get_executor(), Time::max()};
  std::uint32_t waiting_ = 0;  // at the gate
  Sent sent_;
};

}  // namespace millrace::bench
