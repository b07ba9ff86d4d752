// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/time.h"
#include "load/streams/histogram.h"

namespace millrace::bench {

// Counts the messages of a minimal server, and measures how long after their due times they arrive.
// The first 8 bytes of a message are its due time (base/time.h, to_wire; little-endian). Confined
// to one thread.
class BareArrivals {
 public:
  // Measures messages that are due in `length` after `warm_up`, from the due time of the first
  // message on. So does `millrace bench`, whose streams continue for a short time after that.
  BareArrivals(Duration warm_up, Duration length) : warm_up_(warm_up), length_(length) {}

  // An unmasked message has arrived.
  void add(Bytes message);

  // {"messages":…,"damaged":…,"p99_us":…,"burst_p50_us":…}. `damaged`: messages whose first bytes
  // are not a time of the last minute. `burst`: time until the last of the messages with the same
  // due time has arrived.
  std::string json() const;

 private:
  void count(Time due, Time now);

  const Duration warm_up_, length_;
  std::uint64_t messages_ = 0, damaged_ = 0;
  std::optional<Time> from_;  // start of the measured time
  load::Histogram latencies_;
  Time burst_{};  // due time of the last message
  Duration burst_late_{};
  load::Histogram bursts_;  // including bursts of one message
};

}  // namespace millrace::bench
