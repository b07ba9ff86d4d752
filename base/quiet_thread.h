// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <signal.h>

#include <thread>
#include <utility>

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

}  // namespace millrace
