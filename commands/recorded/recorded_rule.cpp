// SPDX-License-Identifier: Apache-2.0
#include "commands/recorded/recorded_rule.h"

#include "chunker/rule_json.h"

namespace millrace::recordings {

Result<ChunkRule, std::string> recorded_rule(const recording::RecordedStream& stream) {
  const auto rule = rule_from_json(
      stream.meta.rule, {.rate = stream.meta.frames.rate, .features = stream.meta.frames.features});
  if (rule) return *rule;
  return "stream " + std::to_string(stream.meta.number) +
         ": the recorded chunk rule is invalid: " + rule.error().message;
}

}  // namespace millrace::recordings
