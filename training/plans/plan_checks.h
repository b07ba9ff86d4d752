// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/result.h"
#include "training/contract/catalog.h"
#include "training/contract/plan.h"
#include "training/contract/plan_options.h"

namespace millrace::training {

// The name of a mode in configurations: "stateful", "stateless", "returnn-classic",
// "returnn-torch".
std::string_view mode_name(PlanMode mode);

// The first error of the options alone, or beside the catalog. Widths are checked elsewhere: they
// need the lengths of all streams.
Result<void, PlanError> check_options(const Catalog& catalog, const PlanOptions& options,
                                      Rank rank);

}  // namespace millrace::training
