// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <random>

#include "tests/support/simulated_cuda/operation.h"

namespace millrace::test::simulated_cuda {

// A stream: a thread that does one operation after the other, with pauses. Once the device is dead
// it drops them. Its thread ends after close(), when nothing is left; the object is never
// destroyed.
//
// To ThreadSanitizer an operation comes after what the thread that put it did before, and after the
// operations before it; nothing comes after an operation but by wait() and what it signals itself.
//
// Thread-safe.
class Stream {
 public:
  Stream(int device, std::uint64_t seed);

  int device() const { return device_; }

  void put(std::unique_ptr<Operation> operation);
  // No more is put: it ends.
  void close();
  void hold(bool held);
  // To be called when something that a stream looks at has changed.
  void wake();

  // Whether all that was put has ended.
  bool idle() const;
  // Until all has that was put so far; or why it never will.
  cudaError_t wait();
  // Until it touches no memory. Requires: its device is dead.
  void settle();
  // Whether its thread is gone.
  bool ended() const { return thread_ended_.load(std::memory_order_acquire); }

  // For operations that run: a random pause, and whether they are to give up.
  void pause();
  bool dead() const;

 private:
  void run();
  std::unique_ptr<Operation> next();
  void execute(Operation& operation);
  void wait_while_copies_are_held();
  void stand(std::chrono::microseconds at_most);

  const int device_;
  std::minstd_rand random_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Operation>> waiting_;
  bool held_ = false, closed_ = false;
  std::atomic<std::uint64_t> put_{0}, done_{0};
  std::atomic<bool> touches_memory_{false}, thread_ended_{false};
};

}  // namespace millrace::test::simulated_cuda
