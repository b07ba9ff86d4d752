// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "schemas/worker_messages.h"
#include "training/filling/stream_error.h"

namespace millrace::training {

// The streams that were skipped for trainers, by the steps that these read. A trainer that attaches
// again inside an epoch, as after a loop that was left, has no states of them. So they stay skipped
// up to the end of the epoch, also if they could be read again.
//
// Confined to one thread.
class SkippedStreams {
 public:
  // Those of a new trainer. They are forgotten if it begins an epoch, or has lost all states.
  FailedStreams of(const worker_protocol::TrainerHello& trainer) {
    const auto found = by_place_.find(place_of(trainer));
    if (found == by_place_.end()) return {};
    if (trainer.step >= trainer.stride && !trainer.resets) return found->second;
    by_place_.erase(found);
    return {};
  }
  // Those of a batch that is handed over.
  void add(const worker_protocol::TrainerHello& trainer, const std::vector<DataError>& failed) {
    if (!failed.empty()) add_failed(by_place_[place_of(trainer)], failed);
  }

 private:
  // Rank, world, stride, and the first of the steps.
  using Place = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t, std::uint64_t>;

  static Place place_of(const worker_protocol::TrainerHello& trainer) {
    return {trainer.rank, trainer.world, trainer.stride, trainer.step % trainer.stride};
  }

  std::map<Place, FailedStreams> by_place_;
};

}  // namespace millrace::training
