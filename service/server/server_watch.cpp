// SPDX-License-Identifier: Apache-2.0
// Checks of the io threads and of the wall clock, readiness, and the samples for the live page.
#include <algorithm>

#include "service/log/wall_clock.h"
#include "service/server/server.h"

namespace millrace {

namespace {

constexpr auto clock_period = std::chrono::seconds(1);

}  // namespace

Task<> Server::watch_clock() {
  WallClockJumps jumps;
  Timer timer(main_.get_executor());
  for (;;) {
    if (const auto jump = jumps.sample(wall_clock(), Clock::now())) {
      stats_.jumps[*jump].add();
      log_.warning("wall clock jumped", {{"direction", name_of(*jump)}});
    }
    log_.sum_up();
    recent_log_.collect();
    if (const Time now = Clock::now(); history_.is_due(now))
      history_.add(exporter_->fresh_text(now), now);
    timer.expires_after(clock_period);
    co_await timer.async_wait(no_throw);
  }
}

Task<> Server::watch_threads() {
  const auto watchdog = Supervisor::watchdog();
  const Duration period = std::min<Duration>(tick_period, watchdog.value_or(tick_period * 2) / 2);
  std::vector<std::uint64_t> ticks(threads_.size());
  Timer timer(main_.get_executor());
  for (;;) {
    std::ranges::transform(threads_, ticks.begin(), [](const auto& io) { return io->ticks(); });
    thread_watch_.update(ticks, period);
    if (watchdog && thread_watch_.silence() < watchdog_silence) supervisor_.alive();
    timer.expires_after(period);
    co_await timer.async_wait(no_throw);
  }
}

std::vector<std::string> Server::not_alive_reasons() const {
  std::vector<std::string> reasons = failures();
  if (thread_watch_.silence() >= dead_silence)
    reasons.push_back("an io thread has not run for " +
                      std::to_string(dead_silence / std::chrono::seconds(1)) + " s");
  return reasons;
}

Readiness Server::readiness() const {
  Readiness readiness{.service = failures()};
  if (draining_) readiness.service.push_back("the service is stopping");
  if (admission_.gate.memory_short.load(std::memory_order_relaxed))
    readiness.service.push_back("the service is short of memory");
  for (const auto& pipeline : pipelines_)
    readiness.pipelines.push_back({.name = pipeline->name(),
                                   .required = pipeline->options().required,
                                   .has_worker = pipeline->stats().workers.value() > 0});
  if (recording_ && recording_->suspended())
    readiness.impairments.push_back(
        "recording is suspended: the disk has too little space, or fails; /log has the reason");
  return readiness;
}

}  // namespace millrace
