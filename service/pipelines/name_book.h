// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>

namespace millrace {

// The names of open connections, which are unique. Used once when a stream opens and once when its
// connection ends, never for each message.
//
// Thread-safe.
class NameBook {
 public:
  // False if a connection has this name.
  [[nodiscard]] bool reserve(std::string_view name) {
    std::lock_guard lock(mutex_);
    return names_.emplace(name).second;
  }
  bool contains(const std::string& name) const {
    std::lock_guard lock(mutex_);
    return names_.contains(name);
  }
  void give_back(const std::string& name) {
    std::lock_guard lock(mutex_);
    names_.erase(name);
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_set<std::string> names_;
};

}  // namespace millrace
