// SPDX-License-Identifier: Apache-2.0
#include "training/plans/origin.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>

#include "chunker/rule_json.h"
#include "training/plans/plan_checks.h"

namespace millrace::training {
namespace {

namespace json = boost::json;

// Increases if the same options give other batches.
constexpr int plan_version = 2;

// Numbers above 2^53 are exact as text only.
std::string hexadecimal(std::uint64_t number) {
  std::array<char, 17> text{};
  std::to_chars(text.data(), text.data() + text.size(), number, 16);
  return text.data();
}

json::value list(const auto& values) {
  json::array array;
  for (const auto& value : values) array.push_back(json::value(value));
  return array;
}

std::string text_of(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value == nullptr ? "missing" : json::serialize(*value);
}

std::string difference_in(std::string_view key, const json::object& a, const json::object& b) {
  const std::string text =
      std::string(key) + " is " + text_of(b, key) + " instead of " + text_of(a, key);
  if (key != "version") return text;
  return "the " + text + ": another release of Millrace makes other batches of the same options";
}

}  // namespace

std::string origin_of(const Catalog& catalog, const PlanOptions& options) {
  json::object origin;
  origin["version"] = plan_version;
  origin["streams"] = catalog.size();  // before the digest: a difference is named by it
  origin["catalog"] = hexadecimal(catalog.digest());
  origin["frequencies"] = list(options.frequencies);
  origin["mode"] = mode_name(options.mode);
  origin["chunk"] = nullptr;
  if (options.chunk) origin["chunk"] = json::parse(to_json(*options.chunk));
  origin["seed"] = std::to_string(options.seed);
  origin["shuffle"] = options.shuffle;
  if (options.mode == PlanMode::stateful) {
    origin["slots"] = options.slots;
  } else {
    origin["rows"] = options.rows;
    origin["max_padded_frames"] = options.max_padded_frames;
    origin["max_waste"] = options.max_waste;
    origin["shuffle_window"] = options.shuffle_window;
    if (!options.order.empty()) origin["order"] = options.order;
    origin["buckets"] = list(options.buckets);
    if (options.bucket_count > 0) origin["buckets"] = options.bucket_count;
    origin["drop_last"] = options.drop_last;
    origin["packed_batch_size"] = options.packed_batch_size;
    origin["max_pad_size"] = options.max_pad_size;
  }
  origin["width_buckets"] = list(options.width_buckets);
  origin["other_lengths"] = static_cast<bool>(options.frames);
  return json::serialize(origin);
}

std::string difference_of(std::string_view expected, std::string_view other) {
  json::error_code failed;
  const json::value parsed = json::parse(expected, failed), found = json::parse(other, failed);
  if (failed || !parsed.is_object() || !found.is_object()) return "it is not a JSON object";
  const json::object &a = parsed.get_object(), &b = found.get_object();
  for (const json::object* object : {&a, &b})
    for (const auto& [key, value] : *object)
      if (text_of(a, key) != text_of(b, key)) return difference_in(key, a, b);
  return {};
}

}  // namespace millrace::training
