// SPDX-License-Identifier: Apache-2.0
#include "examples/pocketsphinx/body_columns.h"

#include <boost/json.hpp>

#include "examples/pocketsphinx/decoder.h"

namespace millrace::pocketsphinx {
namespace {

std::uint32_t number_at(const boost::json::object& rule, std::string_view key) {
  const auto* value = rule.if_contains(key);
  return value ? value->to_number<std::uint32_t>() : 0;
}

}  // namespace

Result<BodyColumns, std::string> BodyColumns::of(const FrameType& frames, std::string_view chunk) {
  if (frames.features || frames.values != 1 || frames.rate != sample_rate)
    return std::string("the pipeline must hold mono audio at 16000 Hz");
  if (frames.element != Element::s16) return std::string("the pipeline's dtype must be s16");

  boost::json::error_code failed;
  const auto rule = boost::json::parse(chunk, failed);
  if (failed || !rule.is_object())
    return "the chunk rule is not a JSON object: " + std::string(chunk);
  try {
    const auto& keys = rule.get_object();
    const std::uint32_t step = number_at(keys, "step");
    if (step != 0 && step != number_at(keys, "size"))
      return std::string("the chunk rule's bodies must lie end to end: step must be size");
    const auto* align = keys.if_contains("align");
    return BodyColumns(align && *align == "packed", number_at(keys, "left"));
  } catch (const std::exception& error) {
    return "the chunk rule cannot be read: " + std::string(error.what());
  }
}

}  // namespace millrace::pocketsphinx
