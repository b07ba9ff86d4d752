// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "training/contract/catalog.h"
#include "training/contract/plan.h"
#include "training/contract/plan_options.h"

namespace millrace::training {

// The share of padding rows above which a warning is due.
inline constexpr double most_padding = 0.05;

// A warning as one line, if a stateful epoch has more padding than that. It names the most slots
// that are sufficient, or the cause if fewer slots do not help, and a length at which long streams
// can be divided. Distributes the streams several times in that case,
// and calls `poll` meanwhile. nullopt: no warning is due.
std::optional<std::string> padding_warning(const Catalog& catalog, const PlanOptions& options,
                                           Rank rank, const PlanTotals& totals,
                                           const Poll& poll = {});

// The share of padding rows, 0 … 1.
double padding_of(const PlanTotals& totals);

}  // namespace millrace::training
