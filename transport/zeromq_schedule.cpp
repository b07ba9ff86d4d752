// SPDX-License-Identifier: Apache-2.0
#include "transport/zeromq_schedule.h"

namespace millrace {

void ZeromqSchedule::heard(ZeromqPeer peer) {
  ++received_;
  if (unreachable_.empty()) return;
  const auto found = unreachable_.find(peer);
  if (found != unreachable_.end()) found->second = received_;
}

bool ZeromqSchedule::sweeps(Time now, const Turn& turn) {
  if (now < sweep_at_ || !is_round_since(swept_, turn)) return false;
  sweep_at_ = now + sweep;
  swept_ = received_;
  return true;
}

std::optional<Time> ZeromqSchedule::alarm(Time now, bool unsettled) {
  const Time due = now + (unsettled ? Duration(second_look) : Duration(sweep));
  if (due >= alarm_) return std::nullopt;
  return alarm_ = due;
}

}  // namespace millrace
