// SPDX-License-Identifier: Apache-2.0
// What an attachment does when a batch fails or the service is lost.
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "workers/library/attachment.h"

namespace millrace {

void Attachment::fail(WorkerBatch& batch, const std::string& why) {
  const Answer error{Answer::Kind::error, why};
  const std::vector<Answer> answers(batch.framed().size(), error);
  const std::vector<Answer> mark_answers(batch.marks().size(), error);
  lost_states_.add(batch);
  done(batch, answers, mark_answers);
}

// What explains why a service gave this worker up.
std::string Attachment::in_hand() const {
  if (taken_.empty() && ready_.empty()) return "; no batch was in hand";
  const Time now = Clock::now();
  if (taken_.empty())
    return "; batch " + std::to_string(number(ready_.front().id())) + " came and was not taken";
  const auto held = std::chrono::duration<double>(now - taken_.front().at).count();
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.1f", held);
  return "; batch " + std::to_string(number(taken_.front().id)) + " was taken " + seconds +
         " s ago and not given back: was done() forgotten, or is the model slow?";
}

// After a Bye it is as agreed that the connection ends: theirs, or ours when all is done.
void Attachment::lose(const WorkerError& reason) {
  if (ending_ || (leaving_ && ready_.empty() && taken_.empty())) {
    closed_ = true;
  } else {
    lost_ = reason;
  }
  link_.end();
}

}  // namespace millrace
