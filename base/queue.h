// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <iterator>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/time.h"

namespace millrace {

// A bounded, closable queue between threads: the only object that they share. Values are moved
// through it. Its memory grows to the largest number of values and is kept, so that it does not
// allocate in steady state.
//
// Thread-safe: any number of producers, one consumer. A producer whose push returns `first` wakes
// the consumer, so that any number of waiting values needs one wake-up. A consumer that waits in
// pop_until or wait_for is woken by the queue.
template <class T>
class Queue {
 public:
  // `first`: added to an empty queue. `more`: added after others. `full`, `closed`: not added.
  enum class Pushed { first, more, full, closed };

  // Holds at most `capacity` values.
  explicit Queue(std::size_t capacity) : capacity_(capacity) {}

  // Takes the memory for `capacity` values that are popped one at a time, and for those that were
  // popped and are not erased yet: then no push allocates. Throws std::bad_alloc.
  void reserve() {
    std::lock_guard lock(mutex_);
    values_.reserve(2 * capacity_);
  }

  // Moves from `value` only if it returns `first` or `more`.
  [[nodiscard]] Pushed try_push(T&& value) {
    std::unique_lock lock(mutex_);
    if (closed_) return Pushed::closed;
    if (values_.size() - taken_ >= capacity_) return Pushed::full;
    const bool first = values_.size() == taken_;
    // Erases the popped values when they are as many as the rest: O(1) per value.
    if (taken_ > 0 && 2 * taken_ >= values_.size()) erase_taken();
    values_.push_back(std::move(value));
    const bool wakes = values_.size() - taken_ == wanted_;
    lock.unlock();
    if (wakes) ready_.notify_one();
    return first ? Pushed::first : Pushed::more;
  }

  // The same for several values, which are added together or not at all. Requires: there is one.
  [[nodiscard]] Pushed try_push(std::span<T> values) {
    std::unique_lock lock(mutex_);
    if (closed_) return Pushed::closed;
    if (values_.size() - taken_ + values.size() > capacity_) return Pushed::full;
    const bool first = values_.size() == taken_;
    if (taken_ > 0 && 2 * taken_ >= values_.size()) erase_taken();
    const bool waits = values_.size() - taken_ < wanted_;
    values_.insert(values_.end(), std::make_move_iterator(values.begin()),
                   std::make_move_iterator(values.end()));
    const bool wakes = waits && values_.size() - taken_ >= wanted_;
    lock.unlock();
    if (wakes) ready_.notify_one();
    return first ? Pushed::first : Pushed::more;
  }

  // Consumer: clears `into` and swaps all waiting values into it.
  void drain(std::vector<T>& into) {
    into.clear();
    std::lock_guard lock(mutex_);
    erase_taken();
    values_.swap(into);
  }

  // Consumer: waits for a value. Returns nullopt after `deadline`, or if closed and empty.
  std::optional<T> pop_until(Time deadline) {
    std::unique_lock lock(mutex_);
    const auto available = [&] { return values_.size() > taken_ || closed_; };
    if (deadline == Time::max()) {  // some standard libraries overflow on it
      ready_.wait(lock, available);
    } else if (!ready_.wait_until(lock, deadline, available)) {
      return std::nullopt;
    }
    if (values_.size() == taken_) return std::nullopt;
    return std::optional<T>(std::move(values_[taken_++]));
  }

  // Consumer: sleeps until `count` values wait, so that it wakes once for all of them. Returns
  // earlier at `deadline`, if closed, and if a value waits after a wake() since the last
  // wait_for().
  void wait_for(std::size_t count, Time deadline) {
    std::unique_lock lock(mutex_);
    wanted_ = count;
    if (std::exchange(woken_, false)) wanted_ = 1;
    const auto enough = [&] { return values_.size() - taken_ >= wanted_ || closed_; };
    if (deadline == Time::max())
      ready_.wait(lock, enough);
    else
      ready_.wait_until(lock, deadline, enough);
    wanted_ = 1;
  }

  // wait_for() needs no more than one value: that which waits now, or else the next one.
  void wake() {
    std::unique_lock lock(mutex_);
    woken_ = std::exchange(wanted_, 1) == 1;
    if (woken_ || values_.size() == taken_) return;
    lock.unlock();
    ready_.notify_one();
  }

  // Waiting values can still be popped; no value can be pushed.
  void close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    ready_.notify_all();
  }

  bool closed() const {
    std::lock_guard lock(mutex_);
    return closed_;
  }

  // The number of values that its memory can hold now.
  std::size_t storage() const {
    std::lock_guard lock(mutex_);
    return values_.capacity();
  }

 private:
  void erase_taken() {
    values_.erase(values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(taken_));
    taken_ = 0;
  }

  mutable std::mutex mutex_;
  std::condition_variable ready_;
  std::vector<T> values_;
  std::size_t taken_ = 0;  // popped, to be erased together
  bool closed_ = false;
  std::size_t wanted_ = 1;  // the consumer is woken when this number of values waits
  bool woken_ = false;      // the next wait_for() needs one value
  const std::size_t capacity_;
};

}  // namespace millrace
