// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/result.h"
#include "training/contract/catalog.h"
#include "training/contract/plan.h"
#include "training/contract/plan_options.h"

namespace millrace::training {

// Makes the plan. The catalog must outlive it. The error is for options that contradict each other
// or the catalog: no streams, more slots than streams, a world that does not divide the slots.
Result<std::unique_ptr<Plan>, PlanError> make_plan(const Catalog& catalog,
                                                   const PlanOptions& options, Rank rank);

}  // namespace millrace::training
