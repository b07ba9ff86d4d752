// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "chunker/spec.h"

namespace millrace {

// A chunk rule as JSON, in the message Welcome to workers: an object with every key that the rule
// may have (has_key()), lengths in frames. `sizes` is an array of frames, or an object with `from`,
// `to` and `step`.

std::string to_json(const ChunkRule& rule);

// Parses the JSON of a service. Lengths may also be times. The error's key is empty if the text is
// not a JSON object.
Result<ChunkRule, SpecError> rule_from_json(std::string_view json, const RuleTarget& target);

}  // namespace millrace
