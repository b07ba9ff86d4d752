// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/stats.h"
#include "training/contract/catalog.h"

namespace millrace::training {

// The trainers of a plan. Written by the home thread of their host.
struct TrainingStats {
  Gauge trainers;
  Counter batches;                      // handed over
  Counter frames;                       // columns of their tensors, padding included
  Counter padding;                      // padding columns among these
  Histogram fill{buckets::fast};        // time of the filling threads for one batch
  Counter waited;                       // nanoseconds in which trainers with a credit had no batch
  Labelled<Counter, DataFault> errors;  // streams that could not be delivered
  Gauge epoch, step;                    // last step that the rank furthest behind received
};

}  // namespace millrace::training
