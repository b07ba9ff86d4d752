// SPDX-License-Identifier: Apache-2.0
#include "tools/gpu_probe/report.h"

#include <algorithm>
#include <chrono>
#include <cstdarg>
#include <cstdio>

namespace millrace::probe {

void say(const char* format, ...) {
  std::fputs("  ", stdout);
  va_list arguments;
  va_start(arguments, format);
  std::vprintf(format, arguments);
  va_end(arguments);
  std::fputc('\n', stdout);
  std::fflush(stdout);
}

double milliseconds(Duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

double microseconds(Duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

Spread spread_of(std::vector<Duration> times) {
  if (times.empty()) return {};
  std::ranges::sort(times);
  const std::size_t last = times.size() - 1;
  return {times[last / 2], times[last * 99 / 100], times[last]};
}

}  // namespace millrace::probe
