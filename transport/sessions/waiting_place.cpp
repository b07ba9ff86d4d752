// SPDX-License-Identifier: Apache-2.0
#include "transport/sessions/waiting_place.h"

#include <utility>

namespace millrace {

std::optional<ErrorCode> WaitingPlace::check(const Conversation& conversation, Time now) {
  if (conversation.stream() || conversation.has_ended()) {
    leave();
    return std::nullopt;
  }
  if (!since_) {
    since_ = now;
    share_ = Share(gate_.waiting, 1);
    stats_.waiting.add(1);
  }
  if (!share_ || gate_.memory_short.load(std::memory_order_relaxed)) return ErrorCode::no_room;
  return now - *since_ > conversation.longest_wait() ? std::optional(ErrorCode::idle)
                                                     : std::nullopt;
}

void WaitingPlace::leave() {
  if (!std::exchange(since_, std::nullopt)) return;
  share_ = Share();
  stats_.waiting.add(-1);
}

}  // namespace millrace
