// SPDX-License-Identifier: Apache-2.0
#include "replay/replay.h"

#include "replay/selection.h"

namespace millrace {

Replay::Replay(recording::Recordings& recordings, std::span<const recording::StreamParts> streams,
               const ScheduleRule& rule, ReplayOutput& output)
    : recordings_(recordings),
      streams_(streams),
      output_(output),
      schedule_(metas_of(recordings, streams), rule),
      speed_(rule.speed) {}

bool Replay::run() {
  pump(Clock::now());
  main_.run();
  return !stopped_;
}

void Replay::stop() {
  net::post(main_, [this] { end(); });
}

void Replay::wait(Time next, Time now) {
  if (next >= timer_at_ && timer_at_ > now) return;
  timer_at_ = next;
  if (next == Time::max()) return;
  timer_.expires_at(next);
  timer_.async_wait([this](boost::system::error_code cancelled) {
    if (!cancelled) pump(Clock::now());
  });
}

void Replay::end() {
  stopped_ = !schedule_.all_over();
  main_.stop();
}

Pace Replay::pace_of(const recording::StreamParts& stream, Time now) const {
  return {.speed = speed_, .opened = from_wire(stream.front().meta.opened_steady), .begun = now};
}

}  // namespace millrace
