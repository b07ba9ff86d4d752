// SPDX-License-Identifier: Apache-2.0
#include "bench/bare_arrivals.h"

#include <algorithm>
#include <cstring>

namespace millrace::bench {

namespace {

using namespace std::chrono_literals;

std::string microseconds(Duration time) {
  return std::to_string(std::chrono::duration<double, std::micro>(time).count());
}

}  // namespace

void BareArrivals::add(Bytes message) {
  const Time now = Clock::now();
  ++messages_;
  std::int64_t wire = 0;
  std::memcpy(&wire, message.data(), std::min(message.size(), sizeof wire));
  const Time due = from_wire(wire);
  if (due > now || due < now - 1min)
    ++damaged_;
  else
    count(due, now);
}

void BareArrivals::count(Time due, Time now) {
  if (!from_) from_ = due + warm_up_;
  if (due < *from_ || due - *from_ >= length_) return;
  latencies_.add(now - due);
  if (due != burst_ && burst_ != Time()) bursts_.add(burst_late_);
  burst_ = due;
  burst_late_ = now - due;
}

std::string BareArrivals::json() const {
  return "{\"messages\":" + std::to_string(messages_) + ",\"damaged\":" + std::to_string(damaged_) +
         ",\"p99_us\":" + microseconds(latencies_.quantile(0.99)) +
         ",\"burst_p50_us\":" + microseconds(bursts_.quantile(0.5)) + '}';
}

}  // namespace millrace::bench
