// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/time.h"

namespace millrace {

// A limit on how long the process takes to end. A thread may hang in a call of a driver.
// Such a thread cannot be stopped, and its memory cannot be freed: the process ends without it.
//
// There is one at a time: it has the process's timer (ITIMER_REAL) and SIGALRM.
class EndLimit {
 public:
  EndLimit() = default;
  EndLimit(const EndLimit&) = delete;
  EndLimit& operator=(const EndLimit&) = delete;
  // Cancels the limit.
  ~EndLimit();

  // If this object still exists then, the process writes one line on standard error and ends with
  // exit code 1. `time_left` is at least a microsecond.
  void start(Duration time_left);

 private:
  bool started_ = false;
};

}  // namespace millrace
