// SPDX-License-Identifier: Apache-2.0
#include "commands/recorded/recorded_rule.h"

#include "chunker/rule_json.h"

namespace millrace::recordings {

Result<RecordedRule, std::string> RecordedRule::of(const recording::RecordedStream& stream) {
  const auto rule = rule_from_json(
      stream.meta.rule, {.rate = stream.meta.frames.rate, .features = stream.meta.frames.features});
  if (rule) return RecordedRule(rule->chunker_spec());
  return "stream " + std::to_string(stream.meta.number) +
         ": the recorded chunk rule is invalid: " + rule.error().message;
}

bool RecordedRule::add(const Event& event) {
  if (event.kind == Event::Kind::size && !spec_.check_size(event.count)) return false;
  chunker_.add(event);
  return true;
}

}  // namespace millrace::recordings
