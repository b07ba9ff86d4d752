// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "chunker/stream_events.h"

namespace millrace {

// Reads the events of a stream from a JSON array like [["frames",1600],["flush",0],…], or from the
// lines that `millrace recordings show` prints: {"event":"frames","count":1600,…}. Errors are
// sentences that name the file and the event.
Result<StreamEvents, std::string> read_events(const std::string& path, const ChunkRule& rule);

}  // namespace millrace
