// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "schemas/worker_messages.h"

namespace millrace::training {

// The ranks that trainers have. Two trainers of one rank are in conflict if they would both receive
// a step. Trainers of another world are in conflict with all trainers. Confined to one thread.
class TrainerRanks {
 public:
  // The reason why the trainer cannot be added; nullopt if it can.
  std::optional<std::string> conflict(const worker_protocol::TrainerHello& trainer) const;
  // Requires: no conflict, and a new id.
  void add(std::uint64_t id, const worker_protocol::TrainerHello& trainer) {
    trainers_.emplace(id, trainer);
  }
  void remove(std::uint64_t id) { trainers_.erase(id); }

 private:
  std::map<std::uint64_t, worker_protocol::TrainerHello> trainers_;
};

}  // namespace millrace::training
