// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "chunker/spec.h"

namespace millrace {

// The chunking of a known model, in the model's own frames.
struct Preset {
  std::string_view name;
  RuleTarget target;  // the streams that the model takes
  ChunkRule rule;
};

// All of them, in the order in which they are listed to people.
std::span<const Preset> presets();

// Nothing where no preset has the name.
const Preset* find_preset(std::string_view name);

// The stream of somebody who has a rule and no stream: its preset's own frames; audio where a rate
// is said, or there is no preset.
RuleTarget target_of(const RuleKeys& keys, std::optional<double> rate);

// The preset's rule for a stream. One in features on a stream of audio is multiplied by the frame
// shift (10 ms) and sees the rest of its last frame's window (15 ms) more on the right.
Result<ChunkRule, SpecError> rule_for(const Preset& preset, const RuleTarget& target);

}  // namespace millrace
