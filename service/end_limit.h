// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/time.h"

namespace millrace {

// A limit on how long the process takes to end. A thread may hang in a call of a driver, and
// neither can it be stopped nor what it uses be freed: then the process ends without it.
//
// There is one at a time: it has the process's timer (ITIMER_REAL) and SIGALRM.
class EndLimit {
 public:
  EndLimit() = default;
  EndLimit(const EndLimit&) = delete;
  EndLimit& operator=(const EndLimit&) = delete;
  // What had to end has ended: there is no limit any more.
  ~EndLimit();

  // If this object still exists then, the process writes one line on standard error and ends with
  // exit code 1. `time_left` is at least a microsecond.
  void start(Duration time_left);

 private:
  bool started_ = false;
};

}  // namespace millrace
