// SPDX-License-Identifier: Apache-2.0
#include "training/serving/trainer_ranks.h"

#include <chrono>
#include <numeric>

#include "training/serving/refusals.h"

namespace millrace::training {

using worker_protocol::TrainerHello;

namespace {

// The steps of a trainer have one remainder of the division by its stride, in each epoch.
bool share_a_step(const TrainerHello& a, const TrainerHello& b) {
  const std::uint64_t common = std::gcd(a.stride, b.stride);
  return a.step % common == b.step % common;
}

}  // namespace

std::optional<std::string> TrainerRanks::conflict(const TrainerHello& trainer, Time now) const {
  for (const auto& [id, other] : trainers_) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - other.since);
    const std::string by = "by " + printable_line(other.name) + ", which has been attached for " +
                           std::to_string(seconds.count()) + " s";
    if (other.place.world != trainer.world)
      return "world = " + std::to_string(other.place.world) + " is in use " + by +
             "; this trainer has world = " + std::to_string(trainer.world);
    if (other.place.rank == trainer.rank && share_a_step(other.place, trainer))
      return "rank " + std::to_string(trainer.rank) + " is in use " + by;
  }
  return std::nullopt;
}

}  // namespace millrace::training
