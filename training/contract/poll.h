// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

namespace millrace::training {

// Called often by a calculation that may take long, on its thread. It may throw, which ends the
// calculation. May be empty.
using Poll = std::function<void()>;

// Calls a Poll for every 4096th of many short pieces of work. Confined to one thread.
class Polling {
 public:
  // `poll` must outlive it.
  explicit Polling(const Poll& poll) : poll_(poll) {}

  void done(std::uint64_t pieces = 1) {
    pieces_ += pieces;
    if (pieces_ < period) return;
    pieces_ = 0;
    if (poll_) poll_();
  }

 private:
  static constexpr std::uint64_t period = 4096;

  const Poll& poll_;
  std::uint64_t pieces_ = 0;
};

}  // namespace millrace::training
