// SPDX-License-Identifier: Apache-2.0
#include "training/serving/trainer_ranks.h"

#include <numeric>

namespace millrace::training {

using worker_protocol::TrainerHello;

namespace {

// The steps of a trainer have one remainder of the division by its stride, in each epoch.
bool share_a_step(const TrainerHello& a, const TrainerHello& b) {
  const std::uint64_t common = std::gcd(a.stride, b.stride);
  return a.step % common == b.step % common;
}

}  // namespace

std::optional<std::string> TrainerRanks::conflict(const TrainerHello& trainer) const {
  for (const auto& [id, other] : trainers_) {
    if (other.world != trainer.world)
      return "trainers with world = " + std::to_string(other.world) +
             " are attached; this one has world = " + std::to_string(trainer.world);
    if (other.rank == trainer.rank && share_a_step(other, trainer))
      return "rank " + std::to_string(trainer.rank) + " is in use by another trainer";
  }
  return std::nullopt;
}

}  // namespace millrace::training
