// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/time.h"
#include "bench/latencies.h"
#include "bench/packets.h"
#include "bench/schedule.h"

namespace millrace::bench {

struct ControlTimes {
  Latencies since_due, since_sent;
};

// What the machine takes for the unavoidable part: the same packets by the same schedule over bare
// TCP connections on loopback, one write each, to one thread that reads and stamps them; with
// `wait`, after a timer of that length that starts when the packet has been read.
ControlTimes run_control(const Packets& packets, Schedule& schedule, Duration wait);

}  // namespace millrace::bench
