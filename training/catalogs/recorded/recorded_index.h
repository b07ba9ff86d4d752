// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "recording/reader/stream_frames.h"
#include "training/catalogs/index/catalog_error.h"
#include "training/catalogs/index/catalog_progress.h"
#include "training/catalogs/index/index.h"
#include "training/contract/catalog.h"

namespace millrace::training {

// True if the folder has recording files of recordings.
bool has_recordings(const std::string& folder);

// Opens the index of a directory of recordings, or makes it. `pipeline`: only its streams; empty:
// all. Streams that are still being recorded are left out. To find the events, all streams are
// read, but those of an older index whose files are the same are not read again.
//
// The error is for recordings that cannot be read, and for streams of several frame types. Throws
// std::runtime_error if the disk fails, and the exceptions of `progress`.
Result<Index, CatalogError> recorded_index(const std::string& folder, const std::string& pipeline,
                                           const CatalogProgress& progress);

// Which streams of a directory the index has, among those that are recorded later: a JSON object
// with the last number, and the ranges of lower numbers that the index does not have. These streams
// were open, are of another pipeline, or were deleted. Lists the last 1000 ranges only.
//
//   {"last": 9, "missing": [[0, 0], [4, 5]]}
std::string extent_of(const Index& index);
// The streams of this extent, as an index of their own. nullopt: there are none, or the text is no
// extent.
std::optional<Index> within(const Index& index, const std::string& extent);

// The events that are not `open`, `frames` or `end`.
std::vector<InnerEvent> inner_events(const recording::StreamFrames& stream);

}  // namespace millrace::training
