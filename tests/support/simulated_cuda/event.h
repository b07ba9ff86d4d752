// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace millrace::test::simulated_cuda {

// What an event is, in memory that other processes may map. Every record has a number; a wait is
// for one of them, the last when the wait was put, whatever is recorded later.
struct EventPage {
  static constexpr std::size_t records = 256;  // under way at once

  std::uint64_t tag = 0;
  std::atomic<std::uint32_t> last{0};       // record; 0: none yet
  std::atomic<std::uint32_t> changes{0};    // of `passed`, to sleep on
  std::atomic<std::uint32_t> destroyed{0};  // by its maker
  // The record of number n is at n % records: n once it has passed.
  std::array<std::atomic<std::uint32_t>, records> passed{};

  std::uint32_t record() { return last.fetch_add(1, std::memory_order_relaxed) + 1; }
  void pass(std::uint32_t number);
  bool has_passed(std::uint32_t number) const;
  // Until it has passed, or `given_up` says so: that is asked again every few milliseconds.
  bool wait(std::uint32_t number, const std::function<bool()>& given_up);
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);  // for it is shared by processes

// An event as a process has it. Never destroyed: something on a stream may still pass it.
struct Event {
  EventPage* page = nullptr;
  int descriptor = -1;  // of the page, while others may open it
  int device = 0;
  unsigned flags = 0;
  bool opened = false;  // another process made it
  // When its last record passed, in ns.
  std::atomic<std::int64_t> passed_at{0};

  bool timed() const;
  bool shared() const;
};

}  // namespace millrace::test::simulated_cuda
