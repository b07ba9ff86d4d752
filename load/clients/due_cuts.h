// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "load/streams/schedule.h"

namespace millrace::load {

// The cuts of the schedule, in order of time, for the clients with index i, i % stride == offset.
// The schedule must outlive it. Confined to one thread.
class DueCuts {
 public:
  DueCuts(const Schedule& schedule, std::uint32_t offset, std::uint32_t stride)
      : schedule_(schedule), offset_(offset), stride_(stride) {}

  struct ClientCut {
    std::uint32_t client = 0;
    Cut cut;
    bool operator>(const ClientCut& other) const { return cut.at > other.cut.at; }
  };
  // The next cut that is due, which is then done. Requires: the schedule has started.
  std::optional<ClientCut> take(Time now);
  // When the next one is due; Time::max(): never.
  Time next() const { return cuts_.empty() ? Time::max() : cuts_.top().cut.at; }

 private:
  void add(std::uint32_t client, Time previous);

  const Schedule& schedule_;
  const std::uint32_t offset_, stride_;
  std::priority_queue<ClientCut, std::vector<ClientCut>, std::greater<>> cuts_;
  std::vector<std::uint64_t> numbers_;  // the next cut of each client; empty before the first call
};

}  // namespace millrace::load
