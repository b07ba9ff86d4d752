// SPDX-License-Identifier: Apache-2.0
#include "chunker/rule_json.h"

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <type_traits>

#include "chunker/lengths.h"
#include "chunker/sizes_text.h"

namespace millrace {
namespace {

namespace json = boost::json;

json::value to_value(const SizeList& sizes) {
  if (sizes.is_range())
    return {{"from", sizes.smallest()}, {"to", sizes.largest()}, {"step", sizes.step()}};
  json::array list;
  for (std::size_t i = 0; i < sizes.size(); ++i) list.push_back(sizes[i]);
  return list;
}

template <class Value>
json::value to_value(const Value& value) {
  if constexpr (std::is_enum_v<Value>)
    return json::string(name_of(value));
  else
    return value;
}

std::string text_of(const json::value& value) {
  if (const auto* number = value.if_double()) return readable(*number);  // 0.1, not 1E-1
  return value.is_string() ? std::string(value.get_string()) : json::serialize(value);
}

bool lacks_unit(const json::value& value) {
  return value.is_string() && millrace::lacks_unit(value.get_string());
}

// True if it is a length without a unit, or has one.
bool has_bare_length(const json::value& value) {
  if (const auto* array = value.if_array()) return std::ranges::any_of(*array, lacks_unit);
  if (const auto* object = value.if_object())
    return std::ranges::any_of(*object,
                               [](const auto& entry) { return lacks_unit(entry.value()); });
  return lacks_unit(value);
}

std::string member(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr ? text_of(*value) : std::string();
}

// The value of a key as the text that parse_rule() takes.
std::string key_text(const json::value& value) {
  if (const auto* object = value.if_object())
    return sizes_text(member(*object, "from"), member(*object, "to"), member(*object, "step"));
  if (const auto* array = value.if_array()) {
    std::vector<std::string> lengths;
    for (const json::value& length : *array) lengths.push_back(text_of(length));
    return sizes_text(lengths);
  }
  return text_of(value);
}

}  // namespace

std::string to_json(const ChunkRule& rule) {
  json::object keys;
  for_each_key(rule, [&](std::string_view key, const auto& value) {
    if (has_key(rule, key)) keys[key] = to_value(value);
  });
  return json::serialize(keys);
}

Result<ChunkRule, SpecError> rule_from_json(std::string_view text, const RuleTarget& target) {
  json::error_code failed;
  const json::value parsed = json::parse(text, failed);
  if (failed || !parsed.is_object())
    return SpecError{"", "the chunk rule is not a JSON object: " + std::string(text)};
  RuleKeys keys;
  for (const auto& [key, value] : parsed.get_object()) {
    keys.emplace_back(key, key_text(value));
    if (has_bare_length(value)) return wrong(key, keys.back().second, unit_missing);
  }
  return parse_rule(keys, target);
}

}  // namespace millrace
