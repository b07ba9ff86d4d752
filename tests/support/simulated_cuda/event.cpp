// SPDX-License-Identifier: Apache-2.0
#include "tests/support/simulated_cuda/event.h"

#include <cuda_runtime_api.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace millrace::test::simulated_cuda {

namespace {

constexpr long poll_period_ns = 2'000'000;

// A futex that processes share, unlike that of std::atomic::wait().
void sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  const timespec at_most{0, poll_period_ns};
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT, value, &at_most,
            nullptr, 0);
}

void wake_all(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE, INT_MAX, nullptr,
            nullptr, 0);
}

bool before(std::uint32_t a, std::uint32_t b) { return static_cast<std::int32_t>(a - b) < 0; }

}  // namespace

void EventPage::pass(std::uint32_t number) {
  std::atomic<std::uint32_t>& slot = passed[number % records];
  std::uint32_t latest = slot.load(std::memory_order_relaxed);
  // The release orders all operations before the record before every wait for it.
  while (before(latest, number) &&
         !slot.compare_exchange_weak(latest, number, std::memory_order_release,
                                     std::memory_order_relaxed)) {
  }
  changes.fetch_add(1, std::memory_order_relaxed);
  wake_all(changes);
}

bool EventPage::has_passed(std::uint32_t number) const {
  return !before(passed[number % records].load(std::memory_order_acquire), number);
}

bool EventPage::wait(std::uint32_t number, const std::function<bool()>& cancelled) {
  while (true) {
    const std::uint32_t seen = changes.load(std::memory_order_relaxed);
    if (has_passed(number)) return true;
    if (cancelled()) return false;
    sleep_on(changes, seen);
  }
}

bool Event::timed() const { return (flags & cudaEventDisableTiming) == 0; }

bool Event::shared() const { return (flags & cudaEventInterprocess) != 0; }

}  // namespace millrace::test::simulated_cuda
