// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

#include "service/config/options.h"
#include "service/config/toml/section.h"

namespace millrace {

// The unit of the queue to the recorder: io threads hand over their events and frames in pages.
inline constexpr std::size_t recording_page = std::size_t{64} << 10;
// The least number of pages of each io thread: one that it fills, and others on their way.
inline constexpr std::size_t least_recording_pages = 4;

// Reads the table [recording]. The directory is not opened: the start of the service does so.
RecordingOptions read_recording(Section& recording);

// If a pipeline has `record`, reports an error if the queue has too few pages for the io threads.
// Requires: [listen], [recording] and the pipelines have been read into `options`.
void check_recording(Section& recording, const Options& options);

// Reads `record` of a [[pipeline]]; nullopt if nothing is recorded. Errors go to the findings of
// the section.
std::optional<RecordRule> read_record(Section& section);

}  // namespace millrace
