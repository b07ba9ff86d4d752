// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/frame_type.h"
#include "gpu/host/row_format.h"
#include "schemas/worker_messages.h"
#include "training/contract/catalog.h"
#include "training/contract/plan.h"
#include "training/contract/plan_options.h"
#include "training/filling/streams/stream_function.h"

namespace millrace::training {

// The plan that a server gives to trainers.
struct ServedPlan {
  std::shared_ptr<const Catalog> catalog;
  PlanOptions options;
  std::optional<std::uint64_t> epochs;         // the plan ends after them; nullopt: it has no end
  RowFormat format;                            // in which batches are written
  std::uint32_t threads = 1;                   // that fill the batches of one trainer; at least 1
  bool skip_failed = false;                    // as FillerSettings::skip_failed
  std::shared_ptr<StreamFunction> function{};  // null: streams are not changed
};

// The most bytes of a batch, in the layout of a slab.
std::size_t slab_bytes(const ServedPlan& served, const Plan& plan, Rank rank);

// The same for a rank that is alone: no batch of any rank is longer. 0 if the options are wrong.
std::size_t most_batch_bytes(const ServedPlan& served);

// As PlanText::shares_slots. O(streams).
bool shares_slots(const ServedPlan& served);

// The Welcome of a trainer, without its slabs. `steps`: steps of its epoch.
worker_protocol::Welcome welcome_of(const ServedPlan& served, const Plan& plan,
                                    const worker_protocol::TrainerHello& trainer,
                                    std::uint64_t steps, bool shares_slots);

// The columns of a batch that are padding.
std::uint64_t padding_of(const worker_protocol::HandedBatch& batch);

// A stream whose name or meta is too long for a message.
struct TextError {
  std::uint64_t stream = 0;
  std::string name;
  ReadError error;
};

// Adds the names and the meta of the streams, up to the first one with an error.
std::optional<TextError> add_texts(const Catalog& catalog,
                                   std::vector<worker_protocol::OpenedStream>& opened);

// Adds them where failed streams are skipped: a text that is too long is not worth a stream. A
// name that is too long is cut, and a meta is left out. If all texts together are too long, a meta
// is left out first. Returns an error for each of these streams.
std::vector<TextError> add_short_texts(const Catalog& catalog,
                                       std::vector<worker_protocol::OpenedStream>& opened);

}  // namespace millrace::training
