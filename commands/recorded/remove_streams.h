// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "commands/console/progress.h"
#include "recording/files/directory.h"

namespace millrace::recordings {

// The outcome of removals.
struct Removed {
  std::uint64_t files = 0;  // rewritten or deleted
  std::uint64_t bytes = 0;  // freed
  // The damage and the losses before, a line each that names the file.
  std::vector<std::string> damages{};
  std::vector<std::string> notices{};  // lines of other kinds
  // Files that still contain removed streams, a line each with the reason.
  std::vector<std::string> errors{};
  // Unsealed files that contain removed streams: a service writes them, and rewrites them when they
  // are sealed.
  std::vector<recording::FileNumber> in_use{};

  bool good() const { return damages.empty() && errors.empty(); }
};

// Notes its lines.
void print(const Removed& removed, Progress& progress);

// Completes all removals, also those that were interrupted: deletes the temporary files of killed
// processes, the indexes of training, and the sealed recording files that have only removed
// streams, and then rewrites the others that contain one, because a rewrite needs space on the
// disk. If the newest file cannot be rewritten, has no other stream and no service uses the
// directory, it is deleted too. Files that are not sealed stay: call seal_abandoned() first. The
// file that a service is writing is left to the service, which rewrites it when it is sealed; the
// service is not delayed for longer than one file takes. The error is a line: the directory cannot
// be used.
Result<Removed, std::string> complete_removals(const std::string& path, Progress& progress);

// Removes these streams: from now on no reader returns them. Then completes all removals. If there
// is no space on the disk to note the streams, files that have no other are deleted before.
Result<Removed, std::string> remove_streams(const std::string& path,
                                            const std::set<std::uint64_t>& streams,
                                            Progress& progress);

}  // namespace millrace::recordings
