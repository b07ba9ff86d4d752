// SPDX-License-Identifier: Apache-2.0
#include "transport/sessions/waiting_place.h"

#include <utility>

#include "transport/net/limits.h"

namespace millrace {

std::optional<WaitingPlace::Fault> WaitingPlace::check(const Conversation& conversation, Time now) {
  if (conversation.stream() || conversation.has_ended()) {
    leave();
    return std::nullopt;
  }
  if (!since_) {
    since_ = now;
    share_ = Share(gate_.waiting, 1);
    stats_.waiting.add(1);
  }
  if (!share_) return Fault{ErrorCode::no_room, "too many connections wait without a stream"};
  if (gate_.memory_short.load(std::memory_order_relaxed))
    return Fault{ErrorCode::no_room, "the service is short of memory"};
  const auto longest = conversation.longest_wait();
  if (now - *since_ <= longest) return std::nullopt;
  return Fault{ErrorCode::idle, "no stream was opened for " + seconds_of(longest)};
}

void WaitingPlace::leave() {
  if (!std::exchange(since_, std::nullopt)) return;
  share_ = Share();
  stats_.waiting.add(-1);
}

}  // namespace millrace
