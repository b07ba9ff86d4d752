// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/time.h"
#include "schemas/worker_messages.h"

namespace millrace::training {

// The ranks that trainers have. Two trainers of one rank are in conflict if they would both receive
// a step. Trainers of another world are in conflict with all trainers. Confined to one thread.
class TrainerRanks {
 public:
  // The reason why the trainer cannot be added, with the name of the trainer in the way, and for
  // how long that one has been attached; nullopt if it can be added.
  std::optional<std::string> conflict(const worker_protocol::TrainerHello& trainer, Time now) const;
  // Requires: no conflict, and a new id.
  void add(std::uint64_t id, const worker_protocol::TrainerHello& trainer, std::string name,
           Time now) {
    trainers_.emplace(id, Attached{trainer, std::move(name), now});
  }
  void remove(std::uint64_t id) { trainers_.erase(id); }

 private:
  struct Attached {
    worker_protocol::TrainerHello place;
    std::string name;
    Time since;
  };

  std::map<std::uint64_t, Attached> trainers_;
};

}  // namespace millrace::training
