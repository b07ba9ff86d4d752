// SPDX-License-Identifier: Apache-2.0
#include "service/watch/overload_watch.h"

#include <malloc.h>

#include <new>
#include <system_error>
#include <utility>

namespace millrace {

namespace {

constexpr std::chrono::milliseconds period{250};
constexpr int checks_per_trim = 4;  // at most one in a second

}  // namespace

OverloadWatch::OverloadWatch(Log& log, ServiceStats& stats, Apply apply)
    : log_(log), stats_(stats), apply_(std::move(apply)), trim_(checks_per_trim) {}

Task<> OverloadWatch::watch(Executor executor) {
  Timer timer(executor);
  for (;;) {
    check();
    timer.expires_after(period);
    co_await timer.async_wait(no_throw);
  }
}

// If a check fails, apply_ is not called: the last action and its limits stay in force.
void OverloadWatch::check() {
  trim_.tick();
  try {
    try {
      const auto use = memory_use();
      if (!use) return report_unknown("/proc cannot be read");
      known_ = true;
      evaluate(*use);
    } catch (const std::system_error& error) {
      report_unknown(error.what());
    }
  } catch (const std::bad_alloc&) {  // also from report_unknown()
  }
}

void OverloadWatch::report_unknown(std::string_view why) {
  if (std::exchange(known_, false)) log_.warning("memory use is unknown", {{"why", why}});
}

void OverloadWatch::evaluate(MemoryUse use) {
  // Freed memory that the allocator keeps counts as used. Returning it is rate-limited: it takes
  // the lock of every arena, and other threads wait for these.
  const bool is_short = MemoryPressure(pressure_).update(use.used, use.limit) != Overload::none;
  if (is_short && trim_.try_start()) {
    ::malloc_trim(0);
    use = memory_use().value_or(use);
  }
  const Overload now = pressure_.update(use.used, use.limit);
  stats_.memory_limit.set(static_cast<std::int64_t>(use.limit));
  apply_(now, MemoryPressure::spare(use.used, use.limit));
  if (now != level_) change(now);
}

void OverloadWatch::change(Overload now) {
  for (const Overload action : values_of<Overload>())
    stats_.overload[action].set(action != Overload::none && action <= now);
  if (now > level_) log_.warning("memory is short", {{"action", name_of(now)}});
  level_ = now;
  if (now == Overload::none) log_.info("memory is no longer short", {});
}

}  // namespace millrace
