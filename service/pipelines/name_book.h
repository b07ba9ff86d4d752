// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/ids.h"

namespace millrace {

// The names of open streams, which are unique, and the io thread of each. Used once when a stream
// opens, when it ends, and when its client connects again, never for each message.
//
// Thread-safe.
class NameBook {
 public:
  struct Holder {
    std::uint32_t thread = 0;           // index of its io thread
    std::optional<StreamKey> key = {};  // if the stream outlives its connection
  };

  // False if a stream has this name.
  [[nodiscard]] bool reserve(std::string_view name, const Holder& holder) {
    std::lock_guard lock(mutex_);
    return names_.emplace(name, holder).second;
  }
  std::optional<Holder> find(const std::string& name) const {
    std::lock_guard lock(mutex_);
    const auto found = names_.find(name);
    return found == names_.end() ? std::nullopt : std::optional(found->second);
  }
  void give_back(const std::string& name) {
    std::lock_guard lock(mutex_);
    names_.erase(name);
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Holder> names_;
};

}  // namespace millrace
