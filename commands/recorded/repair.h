// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "base/result.h"
#include "commands/console/progress.h"
#include "recording/files/recovery.h"

namespace millrace::recordings {

// Files that were sealed, and files that were not: a line each with the reason.
struct Sealed {
  std::vector<recording::Recovered> files{};
  std::vector<std::string> errors{};
};

// Opens a directory that must exist, to change its files. The error is a line: it must belong to
// this user, because the files that are written belong to this user.
Result<recording::Directory, std::string> open_to_change(const std::string& path);

// Removes the catalog of earlier versions, and seals the recording files of a directory that their
// writer left unsealed. The file that a service is writing is left alone, and no service is
// stopped. A service that starts may have to wait until the newest file is sealed. The error is a
// line: the directory cannot be used.
Result<Sealed, std::string> seal_abandoned(const std::string& path, Progress& progress);

// Prints what was cut from each file, and the streams that may have had more: a line each. Losses
// and errors are notes. Returns false if there are any.
bool print(const Sealed& sealed, std::ostream& out, Progress& progress);

// Seals these files, and prints what was cut from each; then completes removals that were
// interrupted. Returns false if a file could not be sealed or rewritten, or if slices in damaged
// chunks were lost: a line names the file.
Result<bool, std::string> repair(const std::string& path, std::ostream& out, Progress& progress);

}  // namespace millrace::recordings
