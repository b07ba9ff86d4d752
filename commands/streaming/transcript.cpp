// SPDX-License-Identifier: Apache-2.0
#include "commands/streaming/transcript.h"

#include <boost/json/parse.hpp>

namespace millrace {

std::optional<Transcript> parse_transcript(std::string_view answer, bool is_last) {
  boost::system::error_code error;
  const auto value = boost::json::parse(answer, error);
  const auto* object = error ? nullptr : value.if_object();
  const auto* text = object ? object->if_contains("text") : nullptr;
  if (!text || !text->is_string()) return std::nullopt;
  const auto* final = object->if_contains("final");
  return Transcript{.text = std::string(text->get_string()),
                    .final = final && final->is_bool() ? final->get_bool() : is_last};
}

}  // namespace millrace
