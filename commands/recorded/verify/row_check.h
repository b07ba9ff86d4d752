// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "commands/recorded/selection.h"
#include "commands/recorded/verify/problems.h"

namespace millrace::recordings {

// Cuts every whole stream again, and compares the number and the digest of its rows, and its
// frames, with the totals that the service recorded. Returns the number of streams that it has cut.
// Calls `cut` with the number of streams so far.
std::uint64_t check_rows(recording::Recordings& recordings, Problems& problems,
                         const std::function<void(std::uint64_t)>& cut);

}  // namespace millrace::recordings
