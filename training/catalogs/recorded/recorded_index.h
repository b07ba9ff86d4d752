// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "training/catalogs/index/catalog_error.h"
#include "training/catalogs/index/catalog_progress.h"
#include "training/catalogs/index/index.h"

namespace millrace::training {

// True if the folder has recording files of recordings.
bool has_recordings(const std::string& folder);

// Opens the index of a directory of recordings, or makes it. `pipeline`: only its streams; empty:
// all. Streams that are still being recorded are left out. To find the events, all streams are
// read, but those of an older index whose files are the same are not read again.
//
// A stream that was lost and opened anew is one stream of several parts. Its frames are counted in
// the order of a JoinedReader, and those that two parts have count twice.
//
// The error is for recordings that cannot be read, and for streams of several frame types. Throws
// std::runtime_error if the disk fails, and the exceptions of `progress`.
Result<Index, CatalogError> recorded_index(const std::string& folder, const std::string& pipeline,
                                           const CatalogProgress& progress);

}  // namespace millrace::training
