// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "base/queue.h"
#include "base/quiet_thread.h"
#include "base/time.h"
#include "training/contract/plan.h"

namespace millrace::training {

// Distributes the epochs of a plan, each of them once. A thread distributes an epoch during the one
// before, so that no step waits for it. Several fillers may share one.
//
// get(), ask() and prepare() are thread-safe between start() and stop(), and a get() that waits
// while stop() ends the thread. All else is confined to one thread.
class Epochs {
 public:
  using Distributed = std::shared_ptr<const EpochPlan>;

  // Starts no thread.
  explicit Epochs(std::shared_ptr<const Plan> plan);
  // As stop().
  ~Epochs();

  const Plan& plan() const { return *plan_; }

  // Starts the thread, if it does not run. Throws std::system_error.
  void start();
  // Ends the thread, and the distribution that is under way.
  void stop() { stop_until(Time::max()); }
  // The same. False: the distribution has not ended at the deadline, because a function that gives
  // the length of a stream takes longer; until a later call ends the thread, only that call and the
  // destructor are allowed.
  bool stop_until(Time deadline);

  // The epoch. Waits until it is distributed; without the thread, distributes it in the calling
  // one. Calls `poll` meanwhile, at least every 0.1 s. Throws the exceptions of Plan::epoch(),
  // those of `poll`, and std::future_error if another thread calls stop().
  Distributed get(std::uint64_t epoch, const Poll& poll = {});
  // Calls `then` on the thread with the epoch, or with the exception of Plan::epoch(). Does not
  // wait. stop() drops requests whose distribution has not ended. Requires: the thread runs.
  // `then` must not throw.
  using Then = std::function<void(Distributed, std::exception_ptr)>;
  void ask(std::uint64_t epoch, Then then);
  // Has the thread distribute the epoch. Does not wait, and does nothing without the thread.
  void prepare(std::uint64_t epoch);

 private:
  struct Request {
    std::uint64_t epoch = 0;
    Then then;  // empty: prepare()
  };

  void run();
  Distributed find_or_make(std::uint64_t epoch, const Poll& poll);

  const std::shared_ptr<const Plan> plan_;
  // Used by the thread while it runs: the two epochs requested last, and those in use.
  struct Known {
    std::uint64_t epoch = 0;
    Distributed kept;
    std::weak_ptr<const EpochPlan> used;
  };
  std::vector<Known> known_;                  // the one requested last is the last
  std::unique_ptr<Queue<Request>> requests_;  // those to the last thread
  std::atomic<bool> runs_{false};             // whether the thread runs
  QuietThreads thread_{1};
};

}  // namespace millrace::training
