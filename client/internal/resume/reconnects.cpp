// SPDX-License-Identifier: Apache-2.0
#include "client/internal/resume/reconnects.h"

#include <algorithm>
#include <chrono>

namespace millrace {
namespace {

constexpr std::chrono::milliseconds first_delay{100};
constexpr std::chrono::milliseconds longest_delay{2000};

}  // namespace

void Reconnects::lost(Time now, bool useful) {
  if (attempts_ > 0 && !useful && now - opened_ < window_) return;
  lost_ = now;
  attempts_ = 0;
}

std::optional<Time> Reconnects::next(Time now, Duration wait) {
  if (now >= limit()) return std::nullopt;
  Duration delay{};
  if (attempts_ > 0) {
    const Duration doubled = first_delay * (1 << std::min(attempts_ - 1, 5));
    delay = std::min<Duration>(longest_delay,
                               doubled * std::uniform_int_distribution(75, 125)(random_) / 100);
  }
  ++attempts_;
  return std::min(now + std::max(delay, wait), limit());
}

}  // namespace millrace
