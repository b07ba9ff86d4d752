// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "training/contract/catalog.h"
#include "training/contract/plan.h"
#include "training/contract/plan_options.h"
#include "training/filling/streams/stream_function.h"
#include "training/keys/dataset_keys.h"

namespace millrace::python {

// The plan of a data set of Python, and all that it was made of.
struct DatasetPlan {
  training::DatasetKeys keys;
  std::shared_ptr<const training::Catalog> catalog;
  training::PlanOptions options;
  std::shared_ptr<training::StreamFunction> function;  // null: streams are not changed
  std::shared_ptr<const training::Plan> plan;
};

}  // namespace millrace::python
