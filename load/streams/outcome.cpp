// SPDX-License-Identifier: Apache-2.0
#include "load/streams/outcome.h"

namespace millrace::load {

void ClientOutcome::add(const ClientOutcome& other) {
  opened += other.opened;
  for (const auto& [what, count] : other.refused) refused[what] += count;
  ended += other.ended;
  disconnected += other.disconnected;
  broken += other.broken;
  if (why.empty()) why = other.why;
  cuts += other.cuts;
  resumed += other.resumed;
  reopened += other.reopened;
  packets += other.packets;
  frames_ended += other.frames_ended;
  lost += other.lost;
  unanswered += other.unanswered;
  answered += other.answered;
  messages += other.messages;
  wrong += other.wrong;
  repeated += other.repeated;
  shed += other.shed;
  failed += other.failed;
  commits += other.commits;
  finished += other.finished;
  unfinished += other.unfinished;
  lateness.add(other.lateness);
  results.add(other.results);
  texts.add(other.texts);
  finals.add(other.finals);
  returns.add(other.returns);
  recoveries.add(other.recoveries);
  disconnects.insert(other.disconnects.begin(), other.disconnects.end());
}

}  // namespace millrace::load
