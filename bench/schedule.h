// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "bench/packets.h"
#include "transport/net.h"

namespace millrace::bench {

// When which stream sends: every 100 ms from a random phase on. The streams' clocks differ by up
// to 0.5 %, so phases wander and no packet is always sent next to the same others.
//
// Immutable once started.
class Schedule {
 public:
  Schedule(std::uint32_t streams, Duration length);

  void start(Time now) { start_ = now; }

  Time due(std::uint32_t stream, std::uint32_t number) const;
  // What is due before, is sent and not counted: caches and pools fill.
  Time counted_from() const;
  Time end() const { return counted_from() + length_; }
  std::uint32_t streams() const { return static_cast<std::uint32_t>(clocks_.size()); }

 private:
  struct StreamClock {
    Duration phase;
    Duration period;
  };

  Duration length_;
  std::vector<StreamClock> clocks_;
  Time start_;
};

// Sends one stream's packets, each when it is due: `send(std::string_view)` is a Task<bool>, false
// when the connection has ended. Gives back how many were sent.
template <class Send>
Task<std::uint32_t> send_paced(const Packets& packets, const Schedule& schedule,
                               std::uint32_t stream, Send send) {
  const Executor executor = co_await net::this_coro::executor;
  Timer timer(executor);
  std::vector<std::byte> packet(packet_bytes);
  const std::string_view bytes(reinterpret_cast<const char*>(packet.data()), packet.size());
  for (std::uint32_t number = 0;; ++number) {
    const Time due = schedule.due(stream, number);
    if (due >= schedule.end()) co_return number;
    timer.expires_at(due);
    co_await timer.async_wait(no_throw);
    packets.write(packet, stream, number, due);
    const bool sent = co_await send(bytes);
    if (!sent) co_return number;
  }
}

}  // namespace millrace::bench
