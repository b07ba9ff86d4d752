// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "training/contract/plan_options.h"
#include "training/plans/make_plan.h"

namespace millrace::training {

inline std::unique_ptr<Plan> plan_of(const Catalog& catalog, const PlanOptions& options,
                                     Rank rank = {}) {
  auto plan = make_plan(catalog, options, rank);
  INFO((plan ? "" : plan.error().message));
  REQUIRE(plan.has_value());
  return std::move(*plan);
}

// The error of options without a plan.
inline PlanError error_of(const Catalog& catalog, const PlanOptions& options, Rank rank = {}) {
  const auto plan = make_plan(catalog, options, rank);
  REQUIRE_FALSE(plan.has_value());
  return plan.error();
}

// Where a cursor begins, and how it goes on.
struct Reading {
  Rank rank{};
  std::uint64_t step = 0;
  std::uint64_t stride = 1;
};

inline std::vector<PlannedBatch> batches_of(const EpochPlan& epoch, const Reading& reading = {}) {
  std::vector<PlannedBatch> batches;
  const auto cursor = epoch.cursor(reading.rank, reading.step, reading.stride);
  for (PlannedBatch batch; cursor->next(batch);) batches.push_back(batch);
  return batches;
}

inline std::vector<PlannedBatch> all_batches(const Catalog& catalog, const PlanOptions& options,
                                             std::uint64_t epoch = 0) {
  return batches_of(*plan_of(catalog, options)->epoch(epoch));
}

// The rows with frames of each batch.
inline std::vector<std::size_t> batch_sizes(const Catalog& catalog, const PlanOptions& options) {
  std::vector<std::size_t> sizes;
  for (const PlannedBatch& batch : all_batches(catalog, options))
    sizes.push_back(batch.framed.size());
  return sizes;
}

}  // namespace millrace::training
