// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace millrace::test::simulated_cuda {

class Stream;

// That something on a stream will read or write a piece of memory, while it lives. Counted relaxed,
// because what it is for is a check, and must not order anything.
class Use {
 public:
  explicit Use(std::atomic<int>& count) : count_(&count) {
    count_->fetch_add(1, std::memory_order_relaxed);
  }
  Use(Use&& other) noexcept : count_(std::exchange(other.count_, nullptr)) {}
  Use& operator=(Use&&) = delete;
  ~Use() {
    if (count_) count_->fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  std::atomic<int>* count_;
};

// One thing on a stream.
struct Operation {
  enum class Kind : std::uint8_t { copy, kernel, host_function, record, wait };

  Kind kind;
  std::function<void(Stream&)> run;
  std::vector<Use> uses = {};
  std::atomic<bool> put = false;

  bool touches_memory() const { return kind == Kind::copy || kind == Kind::kernel; }
};

}  // namespace millrace::test::simulated_cuda
