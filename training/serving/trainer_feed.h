// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/budget.h"
#include "base/result.h"
#include "schemas/worker_messages.h"
#include "training/filling/batch_filler.h"
#include "training/filling/epochs.h"
#include "training/serving/served_plan.h"
#include "training/serving/trainer_memory.h"

namespace millrace::training {

// The batches of one trainer: the memory, and the threads that fill it ahead. There is one buffer
// more than the trainer has credits, so that the next batch is filled while it holds them all.
//
// Confined to one thread at a time. Constructed and destroyed on a thread that may wait.
class TrainerFeed {
 public:
  // Starts to fill. `epochs` are those of a plan of the catalog. `on_filled` as in FillerSettings.
  // `failed`: streams that have failed before. Throws std::system_error.
  TrainerFeed(const ServedPlan& served, std::shared_ptr<Epochs> epochs,
              const worker_protocol::TrainerHello& trainer, std::unique_ptr<TrainerMemory> memory,
              std::function<void()> on_filled, const FailedStreams& failed);

  // The next result without waiting; nullopt if it is not filled yet. Throws as BatchFiller does.
  std::optional<FillResult> next() { return filler_.next_until(Time::min()); }
  // The batch in this buffer is not used any more.
  void give(std::uint32_t buffer, worker_protocol::HandedBatch spent = {}) {
    filler_.give(buffer, std::move(spent));
  }
  // The tensor and the companions of a batch, as they are sent. Valid until the next call, and
  // until the buffer is given.
  Bytes inline_tensor(const FilledBatch& batch);

  TrainerMemory& memory() { return *memory_; }
  // The time that the threads have spent on rows, together.
  Duration filling() const { return filler_.filling(); }

 private:
  std::unique_ptr<TrainerMemory> memory_;
  BatchFiller filler_;
  std::vector<std::byte> joined_;  // used by inline_tensor()
};

}  // namespace millrace::training
