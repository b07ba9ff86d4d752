// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "training/contract/catalog.h"
#include "training/contract/plan_options.h"

namespace millrace::training {

// The inputs of the plan as a JSON object: digest of the catalog, rule, mode, slots, seed, and the
// version of the plans. Ranks and checkpoints compare it: equal text, equal batches.
std::string origin_of(const Catalog& catalog, const PlanOptions& options);

// The first key by which two origins differ, and its two values, as a part of a
// message: "slots is 64 instead of 32". Empty if the origins are equal.
std::string difference_of(std::string_view expected, std::string_view other);

}  // namespace millrace::training
