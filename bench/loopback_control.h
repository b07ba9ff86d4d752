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
// TCP connections on loopback, one write each, to one thread that reads and stamps them. With
// `wait`, it stamps a packet only when a timer of that length has fired that starts when it was
// read; packets that come meanwhile go with it, and are not counted.
ControlTimes run_control(const Packets& packets, Schedule& schedule, Duration wait);

}  // namespace millrace::bench
