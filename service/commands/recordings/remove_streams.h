// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "service/commands/recordings/progress.h"

namespace millrace::recordings {

struct Removed {
  std::uint64_t bytes = 0;  // freed
  // Files that still contain removed streams, a line each with the reason.
  std::vector<std::string> errors{};
};

// Removes these streams: from now on no reader returns them. Then rewrites the sealed segment files
// that contain them, or a stream that was removed before. Files that were left unsealed are sealed
// first. The file that a service is writing is left to the service, which rewrites it when it is
// sealed; the service is not delayed for longer than one file takes. The error is a line: the
// directory cannot be used.
Result<Removed, std::string> remove_streams(const std::string& path,
                                            const std::set<std::uint64_t>& streams,
                                            Progress& progress);

}  // namespace millrace::recordings
