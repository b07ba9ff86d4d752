// SPDX-License-Identifier: Apache-2.0
#include "commands/console/termination.h"

#include <pthread.h>

#include <utility>

namespace millrace {
namespace {

sigset_t terminating_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGTERM);
  ::sigaddset(&signals, SIGINT);
  return signals;
}

}  // namespace

void block_signals(std::initializer_list<int> numbers) {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int number : numbers) ::sigaddset(&signals, number);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

BlockedSignals::BlockedSignals() {
  const sigset_t signals = terminating_signals();
  ::pthread_sigmask(SIG_BLOCK, &signals, &before_);
}

BlockedSignals::~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

Termination::Termination(std::function<void()> stop)
    : thread_([this, stop = std::move(stop)] {
        const sigset_t signals = terminating_signals();
        int signal = 0;
        ::sigwait(&signals, &signal);
        if (ending_) return;
        requested_ = true;
        stop();
      }) {}

Termination::~Termination() {
  ending_ = true;
  // Wakes this one thread. If it has ended already, the signal is not delivered to another one.
  ::pthread_kill(thread_.native_handle(), SIGTERM);
}

}  // namespace millrace
