// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "schemas/worker_messages.h"

namespace millrace {

// Checks that a trainer receives its steps in order, with none missing and none repeated: every
// `stride`-th step of an epoch, and the same remainder of the division by `stride` in each epoch.
class StepOrder {
 public:
  // `steps`: steps of the epoch in which the trainer starts.
  StepOrder(const worker_protocol::TrainerHello& start, std::uint64_t steps)
      : epoch_(start.epoch), step_(start.step), stride_(start.stride), steps_(steps) {}

  // Returns false if the batch is not the next one. Requires: its step is less than its steps.
  bool accept(const worker_protocol::HandedBatch& batch) {
    if (batch.epoch != epoch_ && !may_begin(batch)) return false;
    if (batch.epoch == epoch_ && batch.step != step_) return false;
    epoch_ = batch.epoch;
    step_ = batch.step + stride_;
    steps_ = batch.steps;
    return true;
  }

 private:
  // Epochs without a step of this trainer are skipped.
  bool may_begin(const worker_protocol::HandedBatch& batch) const {
    return batch.epoch > epoch_ && step_ >= steps_ && batch.step == step_ % stride_;
  }

  std::uint64_t epoch_, step_;
  std::uint64_t stride_;
  std::uint64_t steps_;  // in epoch_
};

}  // namespace millrace
