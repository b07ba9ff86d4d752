// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>

namespace millrace::test::simulated_cuda {

// Whether this program was built for ThreadSanitizer.
bool races_are_found();

// While it lives, ThreadSanitizer looks at no memory that this thread touches and takes no lock or
// atomic for an order. The simulation's own locks would otherwise order the threads of the program
// and hide the races that it is there to find.
class Unseen {
 public:
  Unseen();
  ~Unseen();
  Unseen(const Unseen&) = delete;
  Unseen& operator=(const Unseen&) = delete;
};

// A lock that orders nothing but what it guards.
class Locked {
 public:
  explicit Locked(std::mutex& mutex) : lock_(mutex) {}

  std::unique_lock<std::mutex>& lock() { return lock_; }

 private:
  Unseen unseen_;  // first, so that it lasts longer
  std::unique_lock<std::mutex> lock_;
};

}  // namespace millrace::test::simulated_cuda
