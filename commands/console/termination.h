// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <atomic>
#include <functional>
#include <initializer_list>
#include <thread>

namespace millrace {

// Blocks these signals on the calling thread.
void block_signals(std::initializer_list<int> numbers);

// Blocks SIGTERM and SIGINT while it lives, on the thread that creates it and on the threads that
// this one starts meanwhile. Termination then receives them. Confined to one thread.
class BlockedSignals {
 public:
  BlockedSignals();
  ~BlockedSignals();
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

// Waits for SIGTERM or SIGINT on its own thread, and calls `stop` there once. A signal that arrived
// earlier, while blocked, counts. requested() is thread-safe.
//
// Requires: a BlockedSignals exists on the process's first thread.
class Termination {
 public:
  explicit Termination(std::function<void()> stop);
  ~Termination();
  Termination(const Termination&) = delete;
  Termination& operator=(const Termination&) = delete;

  bool requested() const { return requested_; }

 private:
  std::atomic<bool> requested_{false}, ending_{false};
  std::jthread thread_;
};

}  // namespace millrace
