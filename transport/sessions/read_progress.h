// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

#include "base/time.h"
#include "transport/websocket/connection.h"

namespace millrace {

// Whether the client of a connection reads what is sent to it. A byte accepted by a full socket
// counts too: the client must then have acknowledged earlier ones. The connection outlives it.
class ReadProgress {
 public:
  explicit ReadProgress(Connection& connection) : connection_(connection) {}

  // Looks at the acknowledged bytes. Call it several times a second while something is sent.
  void note(Time now) {
    const std::size_t unacknowledged = connection_.unacknowledged();
    if (unacknowledged < unacknowledged_) last_ = now;
    unacknowledged_ = unacknowledged;
  }
  // True if output waits, and the client has acknowledged no byte for longer than `limit`.
  bool is_stalled(Time now, std::chrono::milliseconds limit) {
    const auto sending = connection_.sending_since();
    if (!sending) {
      unacknowledged_ = 0;
      return false;
    }
    note(now);
    return now - std::max(*sending, last_) > limit;
  }
  // When the number of unacknowledged bytes was last seen to decrease.
  Time last() const { return last_; }

 private:
  Connection& connection_;
  std::size_t unacknowledged_ = 0;  // bytes when last looked at
  Time last_{};
};

}  // namespace millrace
