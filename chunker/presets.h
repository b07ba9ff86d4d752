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
  RuleTarget target;  // the streams that the model processes
  ChunkRule rule;
};

// All presets, in the order of help texts and messages.
std::span<const Preset> presets();

// Null if no preset has the name.
const Preset* find_preset(std::string_view name);

// The frames that a rule is for. Without a stream: the preset's frames, or audio if a rate is given
// or there is no preset.
RuleTarget target_of(const RuleKeys& keys, std::optional<double> rate);

// The preset's rule for a stream. On a stream of audio, a preset in features is multiplied by the
// frame shift (10 ms) and gets 15 ms more on the right: the rest of its last frame's window.
Result<ChunkRule, SpecError> rule_for(const Preset& preset, const RuleTarget& target);

}  // namespace millrace
