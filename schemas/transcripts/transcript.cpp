// SPDX-License-Identifier: Apache-2.0
#include "schemas/transcripts/transcript.h"

#include <boost/json/parse.hpp>
#include <utility>

namespace millrace {
namespace {

namespace json = boost::json;

std::optional<double> number_in(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  if (!value || !value->is_number()) return std::nullopt;
  return value->to_number<double>();
}

const json::string* string_in(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value ? value->if_string() : nullptr;
}

std::vector<TranscriptWord> words_in(const json::object& object) {
  const json::value* value = object.if_contains("words");
  const json::array* array = value ? value->if_array() : nullptr;
  std::vector<TranscriptWord> words;
  if (!array) return words;
  for (const json::value& each : *array) {
    const json::object* members = each.if_object();
    const json::string* word = members ? string_in(*members, "word") : nullptr;
    if (!word) continue;
    const auto start = number_in(*members, "start"), end = number_in(*members, "end");
    if (start && end)
      words.push_back({std::string(*word), *start, *end, number_in(*members, "confidence")});
  }
  return words;
}

Transcript plain(std::string text, bool is_last) {
  const std::size_t stable = is_last ? text.size() : 0;
  return {.text = std::move(text), .stable = stable, .final = is_last};
}

std::optional<Transcript> read(const json::value& value, bool is_last) {
  const json::object* object = value.if_object();
  const json::string* text = object ? string_in(*object, "text") : nullptr;
  if (!text) return std::nullopt;
  const json::value* final = object->if_contains("final");
  const json::string* stable = string_in(*object, "stable");
  Transcript transcript =
      plain(std::string(*text), final && final->is_bool() ? final->get_bool() : is_last);
  if (!transcript.final && stable && text->starts_with(*stable)) transcript.stable = stable->size();
  transcript.words = words_in(*object);
  return transcript;
}

std::optional<json::value> parsed(std::string_view answer) {
  boost::system::error_code error;
  json::value value = json::parse(answer, error);
  return error ? std::nullopt : std::optional(std::move(value));
}

}  // namespace

std::optional<Transcript> parse_transcript(std::string_view answer, bool is_last) {
  const auto value = parsed(answer);
  return value ? read(*value, is_last) : std::nullopt;
}

std::optional<Transcript> transcript_of(const Answer& answer, bool is_last) {
  if (answer.kind == Answer::Kind::text) return plain(answer.data, is_last);
  const auto value = answer.kind == Answer::Kind::json ? parsed(answer.data) : std::nullopt;
  if (!value) return std::nullopt;
  const json::string* text = value->if_string();
  return text ? plain(std::string(*text), is_last) : read(*value, is_last);
}

}  // namespace millrace
