// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/result.h"
#include "training/catalogs/open_catalog.h"
#include "training/contract/catalog.h"
#include "training/contract/plan_options.h"
#include "training/filling/loader.h"
#include "training/keys/dataset_keys.h"
#include "training/plans/make_plan.h"

namespace millrace::training {

// A data set of files, ready for make_plan() and Loader.
struct OpenedDataset {
  std::shared_ptr<const Catalog> catalog;
  PlanOptions options;
  LoaderSettings settings;
};

// Opens the catalogs of the keys, one after the other, and joins them. `progress` is called while
// an index is made, `warn` as CatalogSettings::warn. The error is for input that cannot be used, as
// with open_catalog(), and for streams that are not in files. Throws std::system_error if the disk
// fails.
Result<OpenedDataset, PlanError> open_dataset(const DatasetKeys& keys,
                                              const CatalogProgress& progress = {},
                                              const CatalogWarning& warn = {});

}  // namespace millrace::training
