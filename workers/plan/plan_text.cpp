// SPDX-License-Identifier: Apache-2.0
#include "workers/plan/plan_text.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <limits>
#include <utility>

#include "base/enum_names.h"
#include "schemas/json_text.h"
#include "schemas/text.h"

namespace millrace {
namespace {

namespace json = boost::json;

constexpr std::uint64_t max_position = std::numeric_limits<std::int64_t>::max();
constexpr std::uint64_t max_count = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t max_companion_name = 256;

// The member as a whole number of at most `most`; nullopt otherwise.
std::optional<std::uint64_t> number_of(const json::object& object, std::string_view key,
                                       std::uint64_t most) {
  const json::value* value = object.if_contains(key);
  boost::system::error_code failed;
  const auto number = value ? value->to_number<std::uint64_t>(failed) : 0;
  if (!value || failed || number > most) return std::nullopt;
  return number;
}

std::optional<CompanionElement> element_of(const json::object& object) {
  const json::value* value = object.if_contains("element");
  if (!value || !value->is_string()) return std::nullopt;
  for (const CompanionElement element : values_of<CompanionElement>())
    if (std::string_view(value->as_string()) == name_of(element)) return element;
  return std::nullopt;
}

std::optional<CompanionFormat> companion_of(const json::value& value) {
  if (!value.is_object()) return std::nullopt;
  const json::object& object = value.as_object();
  const json::value* name = object.if_contains("name");
  const auto element = element_of(object);
  const auto values = number_of(object, "values", max_companion_frame);
  const auto frames = number_of(object, "frames_per_entry", max_count);
  const auto entries = number_of(object, "entries_per_frame", max_companion_frame);
  if (!name || !name->is_string() || !element || !values || !frames || !entries)
    return std::nullopt;
  if (*values < 1 || *frames < 1 || *entries < 1 || std::min(*frames, *entries) != 1)
    return std::nullopt;
  if (*values * *entries > max_companion_frame / size_of(*element)) return std::nullopt;
  CompanionFormat companion{.name = std::string(std::string_view(name->as_string())),
                            .element = *element,
                            .values = static_cast<std::uint32_t>(*values),
                            .frames_per_entry = static_cast<std::uint32_t>(*frames),
                            .entries_per_frame = static_cast<std::uint32_t>(*entries)};
  if (!is_printable(companion.name, max_companion_name)) return std::nullopt;
  return companion;
}

std::optional<std::vector<CompanionFormat>> companions_of(const json::object& plan) {
  const json::value* list = plan.if_contains("companions");
  if (!list || !list->is_array() || list->as_array().size() > max_companions) return std::nullopt;
  std::vector<CompanionFormat> companions;
  for (const json::value& value : list->as_array()) {
    auto companion = companion_of(value);
    if (!companion) return std::nullopt;
    companions.push_back(std::move(*companion));
  }
  return companions;
}

}  // namespace

std::string to_json(const PlanText& plan) {
  json::array companions;
  for (const CompanionFormat& companion : plan.companions)
    companions.push_back(json::object{{"name", companion.name},
                                      {"element", name_of(companion.element)},
                                      {"values", companion.values},
                                      {"frames_per_entry", companion.frames_per_entry},
                                      {"entries_per_frame", companion.entries_per_frame}});
  json::object rest{{"epoch", plan.epoch},
                    {"steps", plan.steps},
                    {"slots", plan.slots},
                    {"companions", std::move(companions)},
                    {"shares_slots", plan.shares_slots}};
  if (plan.epochs) rest["epochs"] = *plan.epochs;
  // The origin is kept to the letter: texts are compared.
  return "{\"origin\":" + plan.origin + "," + json::serialize(rest).substr(1);
}

std::optional<PlanText> read_plan(std::string_view text) {
  boost::system::error_code failed;
  const json::value value = json::parse(text, failed);
  if (failed || !value.is_object()) return std::nullopt;
  const json::object& object = value.as_object();
  const json::value* origin = object.if_contains("origin");
  const auto epoch = number_of(object, "epoch", max_position);
  const auto steps = number_of(object, "steps", max_position);
  const auto slots = number_of(object, "slots", max_count);
  const auto epochs = number_of(object, "epochs", max_position);
  auto companions = companions_of(object);
  if (!origin || !origin->is_object() || !number_of(origin->as_object(), "streams", max_position) ||
      !epoch || !steps || !slots || !companions)
    return std::nullopt;
  if (object.contains("epochs") && !epochs) return std::nullopt;
  const json::value* shares = object.if_contains("shares_slots");  // older servers have none
  if (shares && !shares->is_bool()) return std::nullopt;
  return PlanText{.origin = std::string(member_text(text, "origin")),
                  .epoch = *epoch,
                  .steps = *steps,
                  .epochs = epochs,
                  .slots = static_cast<std::uint32_t>(*slots),
                  .companions = std::move(*companions),
                  .shares_slots = !shares || shares->as_bool()};
}

}  // namespace millrace
