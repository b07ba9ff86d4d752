// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>

#include "base/time.h"

namespace millrace {

// When a stream whose connection was lost connects again: at once, then after 0.1 s, 0.2 s, 0.4 s …
// at most 2 s, each up to a quarter shorter or longer, so that the clients of a lost service do not
// all come at once. Pure. Confined to the client's thread.
class Reconnects {
 public:
  // The stream is lost if it has no connection for `window`.
  Reconnects(Duration window, std::uint32_t seed) : window_(window), random_(seed) {}

  // The service has opened or continued the stream.
  void opened(Time now) { opened_ = now; }
  // The connection was lost. `useful`: something was sent or received over it for the first time.
  // If connections are lost one after the other and none is useful, one window is for all of them.
  void lost(Time now, bool useful);

  // The time of the next attempt, at least `wait` from now unless the window ends earlier. Nullopt
  // if the window is over.
  std::optional<Time> next(Time now, Duration wait = {});
  // The time for the service to answer one attempt, at most `most`: there are several in a window.
  Duration attempt_time(Duration most) const { return std::min(most, window_ / 3); }
  // The end of the window.
  Time limit() const { return lost_ + window_; }

 private:
  const Duration window_;
  std::minstd_rand random_;
  Time opened_{}, lost_{};
  int attempts_ = 0;
};

}  // namespace millrace
