// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <limits>
#include <system_error>
#include <thread>
#include <vector>

#include "base/quiet_thread.h"

namespace millrace {

// Calls work(thread, i) for each i below `count`: on this thread, which is number 0, and on up to
// `others` more, each of which takes the next i. If no thread can be started, this one does the
// work. Calls progress(taken) on this thread after each of its own calls, with about the number of
// i that are taken. If a call throws, all threads stop, and this throws the same.
template <class Work, class Progress>
void share_work(std::uint64_t count, std::uint64_t others, const char* name, const Work& work,
                Progress progress) {
  constexpr std::uint64_t all_taken = std::numeric_limits<std::uint64_t>::max() / 2;
  // Relaxed: the results are read after the threads are joined.
  std::atomic<std::uint64_t> taken = 0;
  const auto work_one = [&](std::uint64_t thread) {
    const std::uint64_t i = taken.fetch_add(1, std::memory_order_relaxed);
    if (i >= count) return false;
    work(thread, i);
    return true;
  };
  // Ends the other threads if this one throws.
  struct Stop {
    std::atomic<std::uint64_t>& taken;
    ~Stop() { taken.store(all_taken); }
  };
  std::vector<std::exception_ptr> thrown(others);
  {
    std::vector<std::jthread> threads;
    const Stop stop{taken};
    threads.reserve(others);
    try {
      for (std::uint64_t thread = 1; thread <= others; ++thread)
        threads.push_back(quiet_thread(name, [&, thread] {
          try {
            while (work_one(thread)) {
            }
          } catch (...) {
            thrown[thread - 1] = std::current_exception();
            taken.store(all_taken);
          }
        }));
    } catch (const std::system_error&) {  // fewer threads do the work
    }
    while (work_one(0)) progress(taken.load(std::memory_order_relaxed));
  }
  for (const std::exception_ptr& error : thrown)
    if (error) std::rethrow_exception(error);
}

}  // namespace millrace
