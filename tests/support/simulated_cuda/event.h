// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace millrace::test::simulated_cuda {

// The state of an event, in memory that other processes may map. Every record has a number. A wait
// is for the last record at the time when the wait was enqueued.
struct EventPage {
  static constexpr std::size_t records = 256;  // pending at the same time

  std::uint64_t tag = 0;
  std::atomic<std::uint32_t> last{0};       // the last record; 0: no record yet
  std::atomic<std::uint32_t> changes{0};    // changes of `passed`; waiters sleep on it
  std::atomic<std::uint32_t> destroyed{0};  // the maker has destroyed the event
  // Element n % records becomes n when record n has passed.
  std::array<std::atomic<std::uint32_t>, records> passed{};

  std::uint32_t record() { return last.fetch_add(1, std::memory_order_relaxed) + 1; }
  void pass(std::uint32_t number);
  bool has_passed(std::uint32_t number) const;
  // Waits until the record has passed or `cancelled` returns true, which is called every 2 ms.
  bool wait(std::uint32_t number, const std::function<bool()>& cancelled);
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);  // processes share it

// An event in one process. Never deleted: an operation on a stream may still pass it.
struct Event {
  EventPage* page = nullptr;
  int descriptor = -1;  // descriptor of the page, while other processes may open it
  int device = 0;
  unsigned flags = 0;
  bool opened = false;  // another process made it
  // The time when its last record passed, in ns.
  std::atomic<std::int64_t> passed_at{0};

  bool timed() const;
  bool shared() const;
};

}  // namespace millrace::test::simulated_cuda
