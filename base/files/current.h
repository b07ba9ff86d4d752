// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

namespace millrace {

// The content of a file that a reload replaces: threads that have the old content keep it as long
// as they need it.
//
// Thread-safe.
template <class Content>
class Current {
 public:
  using Pointer = std::shared_ptr<const Content>;

  explicit Current(Pointer content = nullptr) : content_(std::move(content)) {}
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

  // Not std::atomic<std::shared_ptr>: its load() in GCC 12 unlocks with relaxed order, which is a
  // data race with a store.
  Pointer get() const { return std::atomic_load(&content_); }
  void replace(Pointer content) noexcept { std::atomic_store(&content_, std::move(content)); }

 private:
  Pointer content_;  // accessed with the atomic functions of shared_ptr
};

}  // namespace millrace
