// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>

#include "base/result.h"
#include "commands/console/progress.h"

namespace millrace::recordings {

// Reads every byte of the recording files of a directory, which may be written meanwhile. With
// `rows`, also cuts every whole stream again. Prints a line for each problem, then a summary.
// Returns true if there is no problem. The error is a line: the directory cannot be read.
//
// These are no problems: parts of streams that the recorder states as lost, streams without an
// end, and the file that a service is writing.
Result<bool, std::string> verify(const std::string& path, bool rows, std::ostream& out,
                                 Progress& progress);

}  // namespace millrace::recordings
