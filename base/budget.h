// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace millrace {

// A bounded amount, such as streams or bytes of slabs, that several threads draw from and give back
// to.
//
// Thread-safe. Memory order is relaxed: no other data depends on the amount.
class Budget {
 public:
  explicit Budget(std::uint64_t limit) : limit_(limit) {}

  // Returns false, and takes nothing, if the total would exceed the limit.
  [[nodiscard]] bool try_take(std::uint64_t amount) {
    std::uint64_t taken = taken_.load(std::memory_order_relaxed);
    do {
      const std::uint64_t limit = limit_.load(std::memory_order_relaxed);
      if (taken > limit || amount > limit - taken) return false;
    } while (!taken_.compare_exchange_weak(taken, taken + amount, std::memory_order_relaxed));
    return true;
  }
  // Takes the amount even if the total then exceeds the limit.
  void take(std::uint64_t amount) { taken_.fetch_add(amount, std::memory_order_relaxed); }
  void give_back(std::uint64_t amount) { taken_.fetch_sub(amount, std::memory_order_relaxed); }

  // If more than the new limit is taken, it stays taken.
  void set_limit(std::uint64_t limit) { limit_.store(limit, std::memory_order_relaxed); }
  std::uint64_t limit() const { return limit_.load(std::memory_order_relaxed); }
  std::uint64_t taken() const { return taken_.load(std::memory_order_relaxed); }
  bool is_full() const { return taken() >= limit(); }

 private:
  std::atomic<std::uint64_t> taken_{0};
  std::atomic<std::uint64_t> limit_;
};

// A part of a budget: taken by the constructor, given back by the destructor. Converts to false if
// the budget had less than `amount` left; nothing is taken then. The budget outlives it. Confined
// to one thread at a time.
class Share {
 public:
  Share() = default;
  Share(Budget& of, std::uint64_t amount)
      : of_(of.try_take(amount) ? &of : nullptr), amount_(amount) {}
  // A part that was taken before.
  static Share taken_before(Budget& of, std::uint64_t amount) {
    Share share;
    share.of_ = &of;
    share.amount_ = amount;
    return share;
  }
  Share(Share&& other) noexcept : of_(std::exchange(other.of_, nullptr)), amount_(other.amount_) {}
  Share& operator=(Share&& other) noexcept {
    std::swap(of_, other.of_);
    std::swap(amount_, other.amount_);
    return *this;
  }
  ~Share() {
    if (of_) of_->give_back(amount_);
  }

  explicit operator bool() const { return of_ != nullptr; }

 private:
  Budget* of_ = nullptr;
  std::uint64_t amount_ = 0;
};

}  // namespace millrace
