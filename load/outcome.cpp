// SPDX-License-Identifier: Apache-2.0
#include "load/outcome.h"

namespace millrace::load {

void ClientOutcome::add(const ClientOutcome& other) {
  opened += other.opened;
  for (const auto& [what, count] : other.refused) refused[what] += count;
  ended += other.ended;
  vanished += other.vanished;
  broken += other.broken;
  if (why.empty()) why = other.why;
  packets += other.packets;
  counted_packets += other.counted_packets;
  frames_ended += other.frames_ended;
  frames_closed += other.frames_closed;
  frames_answered += other.frames_answered;
  lost += other.lost;
  answered += other.answered;
  wrong += other.wrong;
  repeated += other.repeated;
  shed += other.shed;
  failed += other.failed;
  lateness.add(other.lateness);
  results.add(other.results);
}

}  // namespace millrace::load
