// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "recording/reader/recordings.h"

namespace millrace {

// The recorded streams that `which` names, by number, each once; all if it is empty. An entry of
// digits is a number, any other a name, which several streams may have. `pipeline`: only streams of
// this pipeline; empty: of any. The error names the entry or the pipeline without a stream.
Result<std::vector<recording::RecordedStream>, std::string> select_streams(
    recording::Recordings& recordings, const std::vector<std::string>& which,
    const std::string& pipeline);

}  // namespace millrace
