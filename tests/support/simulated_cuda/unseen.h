// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>

namespace millrace::test::simulated_cuda {

// True if this program was built for ThreadSanitizer.
bool races_are_found();

// While it exists, ThreadSanitizer ignores the memory accesses, locks and atomics of this thread.
// Otherwise the simulation's own locks would order the threads of the program and hide races.
class Unseen {
 public:
  Unseen();
  ~Unseen();
  Unseen(const Unseen&) = delete;
  Unseen& operator=(const Unseen&) = delete;
};

// A lock that ThreadSanitizer does not see.
class Locked {
 public:
  explicit Locked(std::mutex& mutex) : lock_(mutex) {}

  std::unique_lock<std::mutex>& lock() { return lock_; }

 private:
  Unseen unseen_;  // first, to be destroyed after lock_
  std::unique_lock<std::mutex> lock_;
};

}  // namespace millrace::test::simulated_cuda
