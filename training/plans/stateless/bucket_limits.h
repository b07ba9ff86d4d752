// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "training/contract/plan_options.h"
#include "training/plans/rows/row_widths.h"

namespace millrace::training {

// Limits of `options.bucket_count` buckets for whole streams of these lengths, without that of the
// widest one. They give the fewest frames, padding included, if each stream is as wide as its
// bucket. Buckets are a little larger or smaller than that, to have whole batches only: their last
// batch would else be small in each epoch. Fewer different lengths give fewer buckets.
std::vector<std::uint32_t> bucket_limits(std::vector<std::uint32_t> lengths,
                                         const PlanOptions& options, const RowWidths& widths);

}  // namespace millrace::training
