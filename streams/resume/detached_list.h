// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>

#include "base/ids.h"
#include "base/time.h"

namespace millrace {

// The streams of the process that wait for a connection. A new stream that needs a slot takes it
// from the one that has waited for the longest time. Used when a stream loses its connection or
// has one again, never for each message.
//
// Thread-safe.
class DetachedList {
 public:
  struct Entry {
    std::string_view pipeline;  // its name, which outlives the list
    Time since{};
    StreamKey key;
    std::uint32_t thread = 0;  // index of its io thread

    auto operator<=>(const Entry&) const = default;
  };

  void add(const Entry& entry) {
    std::lock_guard lock(mutex_);
    entries_.insert(entry);
  }
  // False if take_oldest() has taken it.
  bool remove(const Entry& entry) {
    std::lock_guard lock(mutex_);
    return entries_.erase(entry) > 0;
  }
  // Takes the stream of a pipeline that has waited for the longest time off the list; nullopt if
  // it has no stream that waits. The caller ends the stream.
  std::optional<Entry> take_oldest(std::string_view pipeline) {
    std::lock_guard lock(mutex_);
    const auto first =
        entries_.lower_bound(Entry{.pipeline = pipeline, .since = Time::min(), .key = {}});
    if (first == entries_.end() || first->pipeline != pipeline) return std::nullopt;
    return entries_.extract(first).value();
  }

 private:
  std::mutex mutex_;
  std::set<Entry> entries_;
};

}  // namespace millrace
