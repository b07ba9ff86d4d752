// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

#include <cstddef>
#include <thread>
#include <utility>
#include <vector>

#include "base/queue.h"
#include "base/time.h"

namespace millrace {

// Starts a thread of a library with all signals blocked. Signals then go to the threads of the
// program that links the library, which may wait for them. `name` has at most 15 bytes. Throws
// std::system_error.
template <class Run>
std::jthread quiet_thread(const char* name, Run run) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  struct Restored {
    const sigset_t& mask;
    ~Restored() { ::pthread_sigmask(SIG_SETMASK, &mask, nullptr); }
  } const restored{before};
  std::jthread thread(std::move(run));
  ::pthread_setname_np(thread.native_handle(), name);
  return thread;
}

// Quiet threads whose ends can be awaited up to a deadline. Confined to one thread.
class QuietThreads {
 public:
  // Has at most `most` threads.
  explicit QuietThreads(std::size_t most) : ends_(most) { ends_.reserve(); }

  // Requires: run() does not throw. Throws std::system_error.
  template <class Run>
  void start(const char* name, Run run) {
    threads_.push_back(quiet_thread(name, [this, run = std::move(run)]() mutable {
      run();
      (void)ends_.try_push(0);
    }));
    ++running_;
  }

  bool empty() const { return threads_.empty(); }
  // False: a thread still runs at the deadline.
  bool join_until(Time deadline) {
    for (; running_ > 0; --running_)
      if (!ends_.pop_until(deadline)) return false;
    threads_.clear();
    return true;
  }

 private:
  Queue<int> ends_;  // a value by each thread that ends
  std::size_t running_ = 0;
  std::vector<std::jthread> threads_;  // before ends_ is destroyed, they are joined
};

// While it lives, the timed waits of this thread end on time. By default the kernel may end them
// 50 us late, to end several together. Confined to one thread.
class PreciseTimers {
 public:
  PreciseTimers() { ::prctl(PR_SET_TIMERSLACK, 1UL); }  // ns
  ~PreciseTimers() { ::prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(before_)); }
  PreciseTimers(const PreciseTimers&) = delete;
  PreciseTimers& operator=(const PreciseTimers&) = delete;

 private:
  const int before_ = ::prctl(PR_GET_TIMERSLACK);
};

}  // namespace millrace
