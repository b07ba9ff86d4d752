// SPDX-License-Identifier: Apache-2.0
#include "examples/pocketsphinx/body_columns.h"

#include "chunker/rule_json.h"
#include "examples/pocketsphinx/decoder.h"

namespace millrace::pocketsphinx {

Result<RowColumns, std::string> body_columns(const FrameType& frames, std::string_view chunk) {
  if (frames.features || frames.values != 1 || frames.rate != sample_rate)
    return std::string("the pipeline must have mono audio at 16000 Hz");
  if (frames.element != Element::s16) return std::string("the pipeline's dtype must be s16");

  const auto rule = rule_from_json(chunk, {.rate = frames.rate});
  if (!rule) return "the chunk rule cannot be read: " + rule.error().message;
  if (rule->spec.step_of(rule->spec.size) != rule->spec.size)
    return std::string("the chunk rule's bodies must lie end to end: step must be size");
  return rule->columns();
}

}  // namespace millrace::pocketsphinx
