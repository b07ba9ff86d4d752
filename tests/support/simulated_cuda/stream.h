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

// A stream: a thread that runs one operation after the other, with pauses. Once the device is dead,
// it drops its operations. The thread ends after close(), when no operation is left; the object is
// never destroyed.
//
// For ThreadSanitizer, an operation happens after everything that the enqueuing thread did before,
// and after the previous operations. Nothing happens after an operation, except by wait() and by
// what the operation itself signals.
//
// Thread-safe.
class Stream {
 public:
  Stream(int device, std::uint64_t seed);

  int device() const { return device_; }

  void put(std::unique_ptr<Operation> operation);
  // Ends the stream after its operations. No operation may be enqueued after that.
  void close();
  void hold(bool held);
  // Call it when a condition that streams wait for has changed.
  void wake();

  // True if all enqueued operations have ended.
  bool idle() const;
  // Waits for all operations enqueued so far; returns the error if they will never end.
  cudaError_t wait();
  // Waits until the stream uses no memory. Requires: its device is dead.
  void settle();
  // True if the thread has ended.
  bool ended() const { return thread_ended_.load(std::memory_order_acquire); }

  // For running operations: a random pause, and whether they must stop.
  void pause();
  bool dead() const;

 private:
  void run();
  std::unique_ptr<Operation> next();
  void execute(Operation& operation);
  void wait_while_copies_are_held();
  void wait_for_change(std::chrono::microseconds at_most);

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
