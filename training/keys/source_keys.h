// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "training/keys/dataset_keys.h"
#include "training/keys/json_keys.h"

namespace millrace::training {

// The keys of sources and of their streams: `streams`, `companions`, `split` and `max_stream`.

// "calls", ["calls", ["noise", 0.25], [null, 1]]
Outcome read_streams(std::string_view key, const boost::json::value& value,
                     std::vector<StreamsKey>& into);
// {"vad": "labels", "words": {"field": "words", "frames_per_entry": 160}}
Outcome read_companions(std::string_view key, const boost::json::value& value,
                        std::vector<CompanionSource>& into);
// {"valid": 0.05, "test": 0.05}: the rest is `train`.
Outcome read_split(std::string_view key, const boost::json::value& value,
                   std::vector<SplitPart>& into);
// Frames as a number, or a time as a text.
Outcome read_limit(std::string_view key, const boost::json::value& value,
                   std::optional<std::string>& into);

}  // namespace millrace::training
