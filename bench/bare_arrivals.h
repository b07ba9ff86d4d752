// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/time.h"
#include "load/streams/histogram.h"

namespace millrace::bench {

// What came to a server that does nothing else with it, and how long after it was due. The first 8
// bytes of a message say when that was (base/time.h, to_wire; little-endian). Confined to one
// thread.
class BareArrivals {
 public:
  // Latency counts from `warm_up` after the first message was due, and for so long, as it does in
  // `millrace bench`, whose streams go on for a moment to end.
  BareArrivals(Duration warm_up, Duration length) : warm_up_(warm_up), length_(length) {}

  // A message is here, unmasked.
  void add(Bytes message);

  // {"messages":…,"damaged":…,"p99_us":…,"burst_p50_us":…}; damaged are those whose first bytes
  // are no instant of the last minute; the last is until the last of those that were due at the
  // same instant.
  std::string json() const;

 private:
  void count(Time due, Time now);

  const Duration warm_up_, length_;
  std::uint64_t messages_ = 0, damaged_ = 0;
  std::optional<Time> from_;  // when counting begins
  load::Histogram latencies_;
  Time burst_{};  // when the last that came was due
  Duration burst_late_{};
  load::Histogram bursts_;  // those of one message as well
};

}  // namespace millrace::bench
