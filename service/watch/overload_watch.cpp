// SPDX-License-Identifier: Apache-2.0
#include "service/watch/overload_watch.h"

#include <malloc.h>

#include <new>
#include <system_error>
#include <utility>

namespace millrace {

namespace {

constexpr std::chrono::milliseconds period{250};
constexpr int looks_per_trim = 4;  // a second

}  // namespace

OverloadWatch::OverloadWatch(Log& log, ServiceStats& stats, Act act)
    : log_(log), stats_(stats), act_(std::move(act)), trim_(looks_per_trim) {}

Task<> OverloadWatch::watch(Executor executor) {
  Timer timer(executor);
  for (;;) {
    look();
    timer.expires_after(period);
    co_await timer.async_wait(no_throw);
  }
}

// Where a look fails nothing is said: what was last said of the action, and of what may be taken,
// still holds.
void OverloadWatch::look() {
  trim_.look();
  try {
    try {
      const auto use = memory_use();
      if (!use) return unknown("/proc cannot be read");
      known_ = true;
      compare(*use);
    } catch (const std::system_error& error) {
      unknown(error.what());
    }
  } catch (const std::bad_alloc&) {  // to say so, too
  }
}

void OverloadWatch::unknown(std::string_view why) {
  if (std::exchange(known_, false)) log_.warning("memory use is not known", {{"why", why}});
}

void OverloadWatch::compare(MemoryUse use) {
  Overload now = pressure_.look(use.used, use.most);
  // What was freed and the allocator keeps is used as well. To give it back takes the lock of every
  // arena, which other threads wait for.
  if (now != Overload::none && trim_.take()) {
    ::malloc_trim(0);
    use = memory_use().value_or(use);
    now = pressure_.look(use.used, use.most);
  }
  stats_.memory_limit.set(static_cast<std::int64_t>(use.most));
  act_(now, MemoryPressure::spare(use.used, use.most));
  if (now != level_) change(now);
}

void OverloadWatch::change(Overload now) {
  for (const Overload measure : values_of<Overload>())
    stats_.overload[measure].set(measure != Overload::none && measure <= now);
  if (now > level_) log_.warning("memory is short", {{"action", name_of(now)}});
  level_ = now;
  if (now == Overload::none) log_.info("memory is enough again", {});
}

}  // namespace millrace
