// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "commands/console/progress.h"
#include "commands/recorded/export/part_files.h"
#include "commands/recorded/selection.h"

namespace millrace::recordings {

// Writes the audio of streams to a folder, and `streams.jsonl` (stream_record.h). The folder is
// made with mode 0700 if it does not exist, and the files with mode 0600. The line of a stream is
// written after its files, so a stream that is listed is exported whole. Existing files are never
// overwritten. Recordings that are parts of one stream are exported as one.
//
// Streams whose frames are not audio have a line, and no file: a note names their pipeline. A note
// names each stream of which a recorded part cannot be read. Returns false after a note. The error
// is a line: a file cannot be written.
Result<bool, std::string> export_streams(recording::Recordings& recordings,
                                         const std::vector<recording::RecordedStream>& streams,
                                         const std::string& folder, const AudioFiles& how,
                                         Progress& progress);

}  // namespace millrace::recordings
