// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace millrace {

// A bounded amount (places for streams, bytes of slabs) that several threads take from and give
// back to.
//
// Thread-safe. Relaxed: the amount guards nothing but itself.
class Budget {
 public:
  explicit Budget(std::uint64_t limit) : limit_(limit) {}

  // False, and nothing taken, when that would pass the limit.
  [[nodiscard]] bool try_take(std::uint64_t amount) {
    std::uint64_t taken = taken_.load(std::memory_order_relaxed);
    do {
      const std::uint64_t limit = limit_.load(std::memory_order_relaxed);
      if (taken > limit || amount > limit - taken) return false;
    } while (!taken_.compare_exchange_weak(taken, taken + amount, std::memory_order_relaxed));
    return true;
  }
  void give_back(std::uint64_t amount) { taken_.fetch_sub(amount, std::memory_order_relaxed); }

  // What is taken beyond a smaller limit stays taken.
  void set_limit(std::uint64_t limit) { limit_.store(limit, std::memory_order_relaxed); }
  std::uint64_t limit() const { return limit_.load(std::memory_order_relaxed); }
  std::uint64_t taken() const { return taken_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> taken_{0};
  std::atomic<std::uint64_t> limit_;
};

}  // namespace millrace
