// SPDX-License-Identifier: Apache-2.0
#include "commands/train_serve/plan_table.h"

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <string_view>
#include <utility>
#include <variant>

namespace millrace {

namespace {

namespace json = boost::json;

constexpr std::array<std::string_view, 5> of_trainers{"rank", "world", "device", "prefetch",
                                                      "buffers"};

json::value json_of(const ConfigValue& value);

json::object json_of(const ConfigTable& table) {
  json::object object;
  for (const ConfigEntry& entry : table) object[entry.key] = json_of(entry.value);
  return object;
}

json::value json_of(const ConfigValue& value) {
  if (const auto* table = std::get_if<ConfigTable>(&value.value)) return json_of(*table);
  if (const auto* values = std::get_if<ConfigArray>(&value.value)) {
    json::array array;
    for (const ConfigValue& one : *values) array.push_back(json_of(one));
    return array;
  }
  if (const auto* text = std::get_if<std::string>(&value.value)) return json::string(*text);
  if (const auto* flag = std::get_if<bool>(&value.value)) return *flag;
  if (const auto* whole = std::get_if<std::int64_t>(&value.value)) return *whole;
  if (const auto* number = std::get_if<double>(&value.value)) return *number;
  return nullptr;  // a date, which no key accepts
}

// [[plan.streams]] as the pair [path, frequency]. The error is for other keys.
Result<json::value, PlanTableError> pair_of(const ConfigTable& table, int line) {
  json::value path, frequency = 1.0;
  for (const ConfigEntry& entry : table) {
    if (entry.key == "path")
      path = json_of(entry.value);
    else if (entry.key == "frequency")
      frequency = json_of(entry.value);
    else
      return PlanTableError{
          entry.value.line,
          "unknown key '" + entry.key + "' in [[plan.streams]]; it has path and frequency"};
  }
  if (!path.is_string()) return PlanTableError{line, "[[plan.streams]] needs a path"};
  return json::value(json::array{std::move(path), std::move(frequency)});
}

Result<json::value, PlanTableError> streams_of(const ConfigValue& value) {
  const auto* list = std::get_if<ConfigArray>(&value.value);
  if (!list) return json_of(value);
  json::array sources;
  for (const ConfigValue& one : *list) {
    const auto* table = std::get_if<ConfigTable>(&one.value);
    auto source =
        table ? pair_of(*table, one.line) : Result<json::value, PlanTableError>(json_of(one));
    if (!source) return source.error();
    sources.push_back(std::move(*source));
  }
  return json::value(std::move(sources));
}

int line_of(const ConfigTable& table, std::string_view key, int otherwise) {
  const auto found = std::ranges::find(table, key, &ConfigEntry::key);
  return found == table.end() ? otherwise : found->value.line;
}

}  // namespace

Result<PlanTable, PlanTableError> read_plan_table(const ConfigTable& table, int line) {
  PlanTable plan;
  json::object keys;
  for (const ConfigEntry& entry : table) {
    const auto wrong = [&](const std::string& allowed) {
      return PlanTableError{entry.value.line, "key 'plan." + entry.key + "' " + allowed};
    };
    if (std::ranges::count(of_trainers, entry.key) > 0)
      return wrong("is chosen by each trainer, not by the server");
    if (std::holds_alternative<std::monostate>(entry.value.value)) return wrong("is a date");
    if (entry.key == "epochs") {
      const auto* epochs = std::get_if<std::int64_t>(&entry.value.value);
      if (!epochs || *epochs < 1) return wrong("must be a whole number of 1 or more");
      plan.epochs = static_cast<std::uint64_t>(*epochs);
    } else if (entry.key == "augment" || entry.key == "python") {
      const auto* text = std::get_if<std::string>(&entry.value.value);
      const bool names = text && text->find(':') != std::string::npos;
      if (entry.key == "augment" && !names) return wrong("must be \"MODULE:FUNCTION\"");
      if (!text || text->empty()) return wrong("must be the path of a program");
      (entry.key == "augment" ? plan.augment.function : plan.augment.python) = *text;
    } else if (entry.key == "processes" || entry.key == "longest_call") {
      const auto* number = std::get_if<std::int64_t>(&entry.value.value);
      const bool is_time = entry.key == "longest_call";
      if (!number || *number < 1 || *number > (is_time ? 1'000'000 : 1024))
        return wrong(is_time ? "must be 1 to 1000000 seconds" : "must be 1 to 1024");
      if (is_time)
        plan.augment.longest_call = std::chrono::seconds(*number);
      else
        plan.augment.processes = static_cast<std::uint32_t>(*number);
    } else if (entry.key == "streams") {
      auto streams = streams_of(entry.value);
      if (!streams) return streams.error();
      keys["streams"] = std::move(*streams);
    } else {
      keys[entry.key] = json_of(entry.value);
    }
  }
  auto read = training::read_dataset_keys(keys);
  if (!read)
    return PlanTableError{line_of(table, read.error().key, line), "[plan] " + read.error().message};
  plan.keys = std::move(*read);
  return plan;
}

}  // namespace millrace
