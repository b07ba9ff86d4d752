// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/companion.h"
#include "base/result.h"
#include "training/catalogs/companion_files.h"
#include "training/contract/catalog.h"

namespace millrace::training {

// The format of a companion: from the settings, the first companions, and their lengths. Opens as
// few files as are sufficient, and at most 1000. The error names the file.
Result<CompanionFormat, CatalogError> find_format(const Catalog& catalog,
                                                  const CompanionFiles& files);

}  // namespace millrace::training
