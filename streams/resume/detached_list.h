// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>

#include "base/ids.h"
#include "base/time.h"

namespace millrace {

// The streams of the process that wait for a connection. A new stream that needs a slot, or a place
// among the connections, takes it from the one that has waited for the longest time. Used when a
// stream loses its connection or has one again, never for each message.
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

  // `has_slot`: see Stream::has_slot().
  void add(const Entry& entry, bool has_slot) {
    std::lock_guard lock(mutex_);
    all_.insert(entry);
    if (has_slot) slots_.insert(entry);
  }
  // The stream has no slot any more.
  void free_slot(const Entry& entry) {
    std::lock_guard lock(mutex_);
    slots_.erase(entry);
  }
  // False if it was taken.
  bool remove(const Entry& entry) {
    std::lock_guard lock(mutex_);
    slots_.erase(entry);
    return all_.erase(entry) > 0;
  }
  // Take the stream that has waited for the longest time off the list: any stream, or one with a
  // slot of this pipeline. Nullopt if no such stream waits. The caller ends the stream.
  std::optional<Entry> take_oldest() {
    std::lock_guard lock(mutex_);
    return all_.empty() ? std::nullopt : std::optional(take(*all_.begin()));
  }
  std::optional<Entry> take_oldest(std::string_view pipeline) {
    std::lock_guard lock(mutex_);
    const auto first = oldest(pipeline);
    return first == slots_.end() ? std::nullopt : std::optional(take(*first));
  }
  // True if take_oldest() would return a stream.
  bool has_any() const {
    std::lock_guard lock(mutex_);
    return !all_.empty();
  }
  bool has_any(std::string_view pipeline) const {
    std::lock_guard lock(mutex_);
    return oldest(pipeline) != slots_.end();
  }

 private:
  struct ByTime {
    bool operator()(const Entry& a, const Entry& b) const {
      return std::tie(a.since, a) < std::tie(b.since, b);
    }
  };
  using Slots = std::set<Entry>;  // ordered by pipeline

  Slots::const_iterator oldest(std::string_view pipeline) const {
    const auto first =
        slots_.lower_bound(Entry{.pipeline = pipeline, .since = Time::min(), .key = {}});
    return first == slots_.end() || first->pipeline != pipeline ? slots_.end() : first;
  }
  Entry take(const Entry entry) {
    slots_.erase(entry);
    all_.erase(entry);
    return entry;
  }

  mutable std::mutex mutex_;
  Slots slots_;  // only streams with a slot
  std::set<Entry, ByTime> all_;
};

}  // namespace millrace
