// SPDX-License-Identifier: Apache-2.0
#include "training/keys/source_keys.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <string>

#include "base/enum_names.h"
#include "chunker/lengths.h"

namespace millrace::training {
namespace {

namespace json = boost::json;

Outcome read_frequency(std::string_view key, const json::value& value, double& into) {
  if (const auto read = read_number(key, value, into); !read) return read.error();
  if (into >= 0 && into <= 1e6) return {};
  return wrong(key, value, "must be a frequency from 0 to 1000000");
}

// Null is an object of the caller.
Outcome read_path(std::string_view key, const json::value& value, std::string& into) {
  if (value.is_null()) return {};
  return read_text(key, value, into);
}

Outcome read_one(std::string_view key, const json::value& value, StreamsKey& into) {
  const auto* pair = value.if_array();
  if (pair == nullptr) return read_path(key, value, into.path);
  if (pair->size() != 2) return wrong(key, value, "must be a path and a frequency");
  if (const auto read = read_path(key, (*pair)[0], into.path); !read) return read.error();
  return read_frequency(key, (*pair)[1], into.frequency);
}

// The keys of a companion that is an object.
Outcome read_companion(const std::string& key, const json::object& table, CompanionSource& into) {
  std::string path, field;
  for (const auto& [name, value] : table) {
    const std::string full = key + "." + std::string(name);
    Outcome read;
    if (name == "path")
      read = read_path(full, value, path);
    else if (name == "field")
      read = read_text(full, value, field);
    else if (name == "frames_per_entry")
      read = read_count(full, value, 1u, 1u << 30, into.frames_per_entry.emplace());
    else if (name == "entries_per_frame")
      read = read_count(full, value, 1u, 1u << 16, into.entries_per_frame.emplace());
    else if (name == "dtype")
      read = read_named(full, value, name_of<CompanionElement>, into.element);
    else if (name == "per")
      read = PlanError{full, full + " is for Dataset: trainers make targets of free length"};
    else
      read = unknown(full, {"path", "field", "frames_per_entry", "entries_per_frame", "dtype"});
    if (!read) return read.error();
  }
  if (!path.empty() && !field.empty())
    return PlanError{key + ".field",
                     key + ".field cannot be set beside path: they are two sources"};
  if (into.frames_per_entry && into.entries_per_frame)
    return PlanError{key + ".frames_per_entry",
                     key + ".frames_per_entry cannot be set beside entries_per_frame"};
  into.from = path.empty() ? field : path;
  return {};
}

}  // namespace

Outcome read_streams(std::string_view key, const json::value& value,
                     std::vector<StreamsKey>& into) {
  if (value.is_string()) return read_path(key, value, into.emplace_back().path);
  const auto* list = value.if_array();
  if (list == nullptr || list->empty())
    return wrong(key, value, "must be a path, or a list of paths and of pairs [path, frequency]");
  for (const json::value& one : *list)
    if (const auto read = read_one(key, one, into.emplace_back()); !read) return read.error();
  return {};
}

Outcome read_split(std::string_view key, const json::value& value, std::vector<SplitPart>& into) {
  const auto* table = value.if_object();
  if (table == nullptr || table->empty())
    return wrong(key, value, "must be an object of names and fractions, like {\"valid\": 0.05}");
  double all = 0;
  for (const auto& [name, fraction] : *table) {
    SplitPart& part = into.emplace_back();
    part.name = name;
    const std::string full = std::string(key) + "." + part.name;
    if (const auto read = read_number(full, fraction, part.fraction); !read) return read.error();
    if (!(part.fraction > 0 && part.fraction < 1))
      return wrong(full, fraction, "must be a fraction of the streams, above 0 and below 1");
    if (part.name.empty() || part.name == rest_part)
      return wrong(key, value, "must have names other than train: all other streams are train");
    all += part.fraction;
  }
  if (all >= 1) return wrong(key, value, "must leave streams for train: the sum must be below 1");
  std::ranges::sort(into, {}, &SplitPart::name);
  return {};
}

Outcome read_limit(std::string_view key, const json::value& value,
                   std::optional<std::string>& into) {
  if (value.is_string() && lacks_unit(value.get_string())) return wrong(key, value, unit_missing);
  if (value.is_string()) return read_text(key, value, into.emplace());
  std::uint64_t frames = 0;
  if (!read_count(key, value, 1u, max_window, frames))
    return wrong(key, value, "must be frames, or a time, like \"60s\"");
  into = std::to_string(frames);
  return {};
}

Outcome read_companions(std::string_view key, const json::value& value,
                        std::vector<CompanionSource>& into) {
  const auto* table = value.if_object();
  if (table == nullptr) return wrong(key, value, "must be an object of names and sources");
  for (const auto& [name, source] : *table) {
    CompanionSource& companion = into.emplace_back();
    companion.name = name;
    const std::string full = std::string(key) + "." + std::string(name);
    const auto* object = source.if_object();
    const auto read = object != nullptr ? read_companion(full, *object, companion)
                                        : read_path(full, source, companion.from);
    if (!read) return read.error();
  }
  return {};
}

}  // namespace millrace::training
