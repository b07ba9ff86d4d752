// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/time.h"

// The output of probes. A probe flushes each line, so that one that is killed has printed its
// findings.
namespace millrace::probe {

// Prints an indented line. Arguments are those of printf. The last line of each probe begins with
// `means: `: what the findings mean for Millrace, and for which decision.
[[gnu::format(printf, 1, 2)]] void say(const char* format, ...);

double milliseconds(Duration time);
double microseconds(Duration time);

// Half of the times, 99 % of them, and all of them are at most this long. 0 without times.
struct Spread {
  Duration p50{}, p99{}, most{};
};
Spread spread_of(std::vector<Duration> times);

}  // namespace millrace::probe
