// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/ids.h"
#include "base/time.h"
#include "schemas/worker_messages.h"
#include "training/filling/batch_filler.h"
#include "training/filling/stream_error.h"
#include "training/serving/trainer_feed.h"
#include "workers/hub/connection.h"

namespace millrace::training {

// A trainer from its Hello on.
struct AttachedTrainer {
  std::uint64_t id = 0;
  WorkerConnection* link = nullptr;
  std::string name;
  worker_protocol::TrainerHello rank;
  std::uint32_t credits = 0;
  Time last_received{};

  std::unique_ptr<TrainerFeed> feed;  // null before Welcome
  std::optional<FillResult> next;     // filled, and not handed over
  std::uint64_t next_batch = 1;
  // The buffers of the batches that it holds; nullopt: the batch was sent, and its buffer is free.
  std::unordered_map<BatchId, std::optional<std::uint32_t>> held;
  std::optional<Time> waiting;     // since when it has a credit and no batch for it
  std::optional<PlanPosition> at;  // the last step that was handed over
  Duration filling{};              // TrainerFeed::filling() after the last batch

  bool has_credit() const { return held.size() < credits; }
};

}  // namespace millrace::training
