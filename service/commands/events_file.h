// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/event.h"
#include "base/result.h"
#include "chunker/spec.h"

namespace millrace {

// The events of a stream from a JSON array [["frames",1600],["flush",0],…] of pairs of what happens
// (frames, size, flush, reset, gap, end, abort) and a count, up to the first end or abort. They are
// such that a Chunker of `spec` takes them. Errors are sentences that name the file and the event.
Result<std::vector<Event>, std::string> read_events(const std::string& path, const Spec& spec);

}  // namespace millrace
