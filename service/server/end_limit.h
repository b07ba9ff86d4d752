// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/time.h"

namespace millrace {

// A limit on the time that the process takes to end. A thread may hang in a call of a driver; then
// it cannot be stopped and its memory cannot be freed, so the process exits without it. Confined to
// one thread.
//
// Requires: only one exists at a time, as it uses the process's timer (ITIMER_REAL) and SIGALRM.
class EndLimit {
 public:
  EndLimit() = default;
  EndLimit(const EndLimit&) = delete;
  EndLimit& operator=(const EndLimit&) = delete;
  // Cancels the limit.
  ~EndLimit();

  // If this object still exists after `time_left`, the process writes one line to standard error
  // and ends with exit code 1. Requires: `time_left` is at least a microsecond.
  void start(Duration time_left);

 private:
  bool started_ = false;
};

}  // namespace millrace
