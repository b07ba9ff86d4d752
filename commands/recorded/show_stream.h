// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>

#include "base/result.h"
#include "commands/console/progress.h"
#include "commands/recorded/selection.h"
#include "recording/reader/stream_parts.h"

namespace millrace::recordings {

// Prints the events of a stream as JSON lines (event_json.h), with the answers and the totals among
// them. `millrace chunk --events` reads the lines. If the stream is still being recorded, ends with
// the last event that is on the disk. Missing parts are noted too.
void show_events(recording::Recordings& recordings, const recording::StreamParts& parts,
                 std::ostream& out, Progress& progress);

// Prints the rows that the recorded rule cuts, as `millrace chunk` prints them. Missing parts are
// noted. The error is a sentence.
Result<void, std::string> show_rows(recording::Recordings& recordings,
                                    const recording::StreamParts& parts, std::ostream& out,
                                    Progress& progress);

}  // namespace millrace::recordings
