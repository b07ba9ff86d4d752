// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace millrace::test::simulated_cuda {

class Stream;

// While it exists, a piece of memory counts as used by an operation on a stream. The count is
// relaxed: it serves a check and must not order anything.
class MemoryUse {
 public:
  explicit MemoryUse(std::atomic<int>& count) : count_(&count) {
    count_->fetch_add(1, std::memory_order_relaxed);
  }
  MemoryUse(MemoryUse&& other) noexcept : count_(std::exchange(other.count_, nullptr)) {}
  MemoryUse& operator=(MemoryUse&&) = delete;
  ~MemoryUse() {
    if (count_) count_->fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  std::atomic<int>* count_;
};

// One operation on a stream.
struct Operation {
  enum class Kind : std::uint8_t { copy, kernel, record, wait };

  Kind kind;
  std::function<void(Stream&)> run;
  std::vector<MemoryUse> uses = {};
  std::atomic<bool> put = false;

  bool touches_memory() const { return kind == Kind::copy || kind == Kind::kernel; }
};

}  // namespace millrace::test::simulated_cuda
