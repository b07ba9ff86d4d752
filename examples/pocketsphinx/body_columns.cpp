// SPDX-License-Identifier: Apache-2.0
#include "examples/pocketsphinx/body_columns.h"

#include <boost/json.hpp>

#include "chunker/spec.h"
#include "examples/pocketsphinx/decoder.h"

namespace millrace::pocketsphinx {

namespace {

// The keys of a rule in the worker protocol: lengths are numbers of frames, others are strings.
RuleKeys keys_of(const boost::json::object& rule) {
  RuleKeys keys;
  for (const auto& [key, value] : rule)
    keys.emplace_back(
        key, value.is_string() ? std::string(value.get_string()) : boost::json::serialize(value));
  return keys;
}

}  // namespace

Result<RowColumns, std::string> body_columns(const FrameType& frames, std::string_view chunk) {
  if (frames.features || frames.values != 1 || frames.rate != sample_rate)
    return std::string("the pipeline must have mono audio at 16000 Hz");
  if (frames.element != Element::s16) return std::string("the pipeline's dtype must be s16");

  boost::json::error_code failed;
  const auto object = boost::json::parse(chunk, failed);
  if (failed || !object.is_object())
    return "the chunk rule is not a JSON object: " + std::string(chunk);
  const auto rule = parse_rule(keys_of(object.get_object()), {.rate = frames.rate});
  if (!rule) return "the chunk rule cannot be read: " + rule.error().message;
  if (rule->spec.step_of(rule->spec.size) != rule->spec.size)
    return std::string("the chunk rule's bodies must lie end to end: step must be size");
  return rule->columns();
}

}  // namespace millrace::pocketsphinx
