// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <atomic>
#include <functional>
#include <initializer_list>
#include <thread>

namespace millrace {

// From now on these signals do not interrupt this thread.
void block_signals(std::initializer_list<int> numbers);

// SIGTERM and SIGINT as something to ask for: this thread, and those that it starts meanwhile, are
// not interrupted by them.
class BlockedSignals {
 public:
  BlockedSignals();
  ~BlockedSignals();
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

// Calls `stop` when the first of them comes, on a thread of its own; one that came earlier, while
// they were blocked, counts. Requires: a BlockedSignals of the process's first thread.
class Termination {
 public:
  explicit Termination(std::function<void()> stop);
  ~Termination();
  Termination(const Termination&) = delete;
  Termination& operator=(const Termination&) = delete;

  bool came() const { return came_; }

 private:
  std::atomic<bool> came_{false}, over_{false};
  std::jthread thread_;
};

}  // namespace millrace
