// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/budget.h"
#include "base/result.h"
#include "schemas/worker_messages.h"
#include "training/contract/plan.h"
#include "training/filling/epochs.h"
#include "training/serving/served_plan.h"
#include "training/serving/trainer_feed.h"

namespace millrace::training {

// A trainer that may be welcomed.
struct MadeTrainer {
  std::unique_ptr<TrainerFeed> feed;  // null: it asks for the plan only
  worker_protocol::Welcome welcome;
};

// Makes the feeds of trainers. This takes long: it distributes an epoch and allocates memory.
// Trainers of one world share the distributions. Confined to one thread.
class TrainerMaker {
 public:
  // `bytes` is the budget for the memory of all trainers. Both must outlive it.
  TrainerMaker(const ServedPlan& served, Budget& bytes)
      : served_(served), bytes_(bytes), shares_slots_(shares_slots(served)) {}

  // `local`: the trainer is on this machine and shares memory. `failed`: as TrainerFeed. Requires:
  // hello.trainer.
  Result<MadeTrainer, worker_protocol::Refused> make(const worker_protocol::Hello& hello,
                                                     bool local, std::function<void()> on_filled,
                                                     const FailedStreams& failed);

 private:
  Result<std::shared_ptr<Epochs>, worker_protocol::Refused> epochs_for(Rank rank);

  const ServedPlan& served_;
  Budget& bytes_;
  const bool shares_slots_;
  std::uint32_t world_ = 0;  // world of epochs_; 0: there are none
  std::shared_ptr<Epochs> epochs_;
};

}  // namespace millrace::training
