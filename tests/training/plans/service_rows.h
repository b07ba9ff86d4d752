// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "chunker/spec.h"
#include "training/contract/catalog.h"
#include "training/plans/rows/cut_row.h"

namespace millrace::training {

// The rows of a live stream whose rows never wait: a cutter gets its events, in pieces of random
// length.
std::vector<CutRow> service_rows(const ChunkRule& rule, const std::string& name,
                                 const std::vector<InnerEvent>& events, std::uint64_t frames,
                                 std::mt19937_64& random);

// Without the marker rows before the first row with frames, which gets START. Plans give these.
std::vector<CutRow> planned(std::vector<CutRow> rows);

// Small numbers, so that borders meet often. The rule has sizes if `sizes`.
ChunkRule random_rule(std::mt19937_64& random, bool sizes);
// Up to four events. The last may be an abort.
std::vector<InnerEvent> random_events(std::uint64_t frames, std::mt19937_64& random);

}  // namespace millrace::training
