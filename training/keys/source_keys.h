// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "training/keys/dataset_keys.h"
#include "training/keys/json_keys.h"

namespace millrace::training {

// The keys that name sources: `streams` and `companions`.

// "calls", ["calls", ["noise", 0.25], [null, 1]]
Outcome read_streams(std::string_view key, const boost::json::value& value,
                     std::vector<StreamsKey>& into);
// {"vad": "labels", "words": {"field": "words", "frames_per_entry": 160}}
Outcome read_companions(std::string_view key, const boost::json::value& value,
                        std::vector<CompanionSource>& into);

}  // namespace millrace::training
