// SPDX-License-Identifier: Apache-2.0
#include "chunker/spec.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <span>
#include <sstream>

#include "chunker/lengths.h"
#include "chunker/presets.h"
#include "chunker/sizes_text.h"

namespace millrace {
namespace {

// "a, b or c"
std::string listed(std::span<const std::string_view> names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 < names.size() ? ", " : " or ";
    text += names[i];
  }
  return text;
}

using Key = RuleKeys::value_type;
using Outcome = Result<void, SpecError>;

template <class Enum>
Outcome read(const Key& key, double, Enum& into) {
  if (const auto value = value_named<Enum>(key.second)) {
    into = *value;
    return {};
  }
  std::vector<std::string_view> words;
  for (const Enum value : values_of<Enum>()) words.push_back(name_of(value));
  return wrong(key.first, key.second, "must be " + listed(words));
}

Outcome read(const Key& key, double rate, std::uint32_t& into) {
  const auto frames = parse_length(key.second, rate);
  if (!frames) return wrong(key.first, key.second, frames.error());
  into = *frames;
  return {};
}

Outcome read(const Key& key, double rate, SizeList& into) {
  auto sizes = parse_sizes(key.second, rate);
  if (!sizes) return wrong(key.first, key.second, sizes.error());
  into = *std::move(sizes);
  return {};
}

Outcome read(const Key& key, double, std::uint64_t& into) {
  // The largest whole number of TOML.
  constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  const char* end = key.second.data() + key.second.size();
  const auto [stop, error] = std::from_chars(key.second.data(), end, into);
  if (error == std::errc() && stop == end && into <= most) return {};
  return wrong(key.first, key.second, "must be a whole number from 0 to " + std::to_string(most));
}

Outcome apply(const Key& key, double rate, ChunkRule& rule) {
  if (key == Key{"rule", "endpoint"})
    return wrong(key.first, key.second,
                 "must be fixed, adaptive or random: segments are ended by the key endpoint of the "
                 "pipeline, beside chunk");
  std::optional<Outcome> outcome;
  for_each_key(rule, [&](std::string_view name, auto& member) {
    if (name == key.first) outcome = read(key, rate, member);
  });
  if (outcome) return *outcome;
  return wrong(key.first, key.second, "is unknown: the key must be " + listed(rule_keys()));
}

const Key* find_key(const RuleKeys& keys, std::string_view name) {
  const auto found = std::ranges::find(keys, name, &Key::first);
  return found == keys.end() ? nullptr : &*found;
}

Result<ChunkRule, SpecError> preset_rule(const Key& key, const RuleTarget& target) {
  const Preset* preset = find_preset(key.second);
  if (preset != nullptr) return rule_for(*preset, target);
  std::vector<std::string_view> names;
  for (const Preset& known : presets()) names.push_back(known.name);
  return wrong("preset", key.second, "must be " + listed(names));
}

Outcome check_companions(const Key& key, const RuleKeys& keys) {
  if (find_key(keys, key.first) != &key)
    return wrong(key.first, key.second, "is a repeated key: each key may be given once");
  const bool beside_preset = key.first == "preset" || key.first == "align" || key.first == "pad";
  if (!beside_preset && find_key(keys, "preset") != nullptr)
    return wrong(key.first, key.second, "cannot be combined with preset: only align and pad can");
  return {};
}

// The key, or its default if it is not set.
Key key_or(const RuleKeys& keys, std::string_view name, std::string_view fallback) {
  const Key* key = find_key(keys, name);
  return key != nullptr ? *key : Key(name, fallback);
}

Outcome refuse(const Key& key, std::string_view sentence) {
  return wrong(key.first, key.second, sentence);
}

// Checks that only keys are set that have an effect under the rule.
Outcome check_size_keys(const ChunkRule& rule, const RuleKeys& keys) {
  const Key by = key_or(keys, "rule", name_of(rule.sizes.by));
  const bool random = rule.sizes.by == SizeRule::By::random;
  for (const std::string_view name : {"seed", "per"})
    if (const Key* key = find_key(keys, name); key != nullptr && !random)
      return refuse(*key, "cannot be set with rule = \"" + by.second + "\": only with random");
  if (rule.sizes.by != SizeRule::By::fixed && rule.sizes.sizes.empty())
    return refuse(by, "needs the key sizes: the sizes that the model was trained with");
  return {};
}

std::string listed(const SizeList& sizes) {
  const std::string frames = " frames";
  if (sizes.is_range())
    return std::to_string(sizes.smallest()) + " to " + std::to_string(sizes.largest()) +
           " in steps of " + std::to_string(sizes.step()) + frames;
  std::string text;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    text += (i > 0 ? ", " : "") + std::to_string(sizes[i]);
  return text + frames;
}

// The first bodies of all sizes, whose differences from the sizes are equal.
Outcome check_first(const ChunkRule& rule, const Key& first) {
  const std::int64_t difference = rule.first_longer();
  const std::int64_t smallest = rule.sizes.sizes.smallest(), largest = rule.sizes.sizes.largest();
  if (smallest + difference < 1)
    return refuse(first,
                  "is too short: it differs from size by as many frames as for each of "
                  "sizes, so the first body for the smallest of sizes would have " +
                      std::to_string(smallest + difference) + " frames");
  const std::int64_t most = std::int64_t{max_window} - rule.spec.left - rule.spec.right;
  if (largest + std::max<std::int64_t>(difference, 0) > most)
    return refuse(first,
                  "is too long: with left, right and the largest of sizes, a window has "
                  "more than " +
                      std::to_string(max_window) + " frames");
  return {};
}

// Checks a rule that has sizes.
Outcome check_sizes(const ChunkRule& rule, const RuleKeys& keys) {
  const Key sizes = key_or(keys, "sizes", ""), size = key_or(keys, "size", "");
  if (rule.spec.step > 0)
    return refuse(key_or(keys, "step", ""),
                  "cannot be combined with sizes: then bodies lie end to end");
  if (rule.sizes.sizes.is_range() && rule.sizes.by != SizeRule::By::random)
    return refuse(sizes, "must be a list of 2 to 16 lengths: a range needs rule = \"random\"");
  if (!rule.sizes.sizes.contains(rule.spec.size))
    return refuse(size, "must be one of sizes, which are " + listed(rule.sizes.sizes));
  return check_first(rule, rule.spec.first > 0 ? key_or(keys, "first", "") : sizes);
}

}  // namespace

bool has_key(const ChunkRule& rule, std::string_view key) {
  if (key == "rule" || key == "sizes") return !rule.sizes.sizes.empty();
  if (key == "seed" || key == "per") return rule.sizes.by == SizeRule::By::random;
  return true;
}

std::vector<std::string_view> rule_keys() {
  std::vector<std::string_view> names;
  const ChunkRule rule;
  for_each_key(rule, [&](std::string_view name, const auto&) { names.push_back(name); });
  names.push_back("preset");
  return names;
}

Result<RuleKeys, std::string> split_rule_keys(const std::string& text) {
  RuleKeys keys;
  std::istringstream items(text);
  for (std::string item; std::getline(items, item, ',');) {
    const auto equals = item.find('=');
    if (equals == item.npos)
      return "\"" + item + "\" must be KEY=VALUE; separate several by commas";
    keys.emplace_back(item.substr(0, equals), item.substr(equals + 1));
  }
  return keys;
}

Result<ChunkRule, SpecError> parse_rule(const RuleKeys& keys, const RuleTarget& target) {
  ChunkRule rule;
  const Key* preset = find_key(keys, "preset");
  if (preset != nullptr) {
    const auto of_preset = preset_rule(*preset, target);
    if (!of_preset) return of_preset.error();
    rule = *of_preset;
  } else if (find_key(keys, "size") == nullptr) {
    return SpecError{"size", "size is missing: a chunk rule needs size or preset"};
  }
  for (const Key& key : keys) {
    if (const auto alone = check_companions(key, keys); !alone) return alone.error();
    if (&key == preset) continue;
    if (const auto applied = apply(key, target.rate, rule); !applied) return applied.error();
  }
  if (const auto checked = rule.spec.check(); !checked) return checked.error();
  if (const auto checked = check_size_keys(rule, keys); !checked) return checked.error();
  if (rule.sizes.sizes.empty()) return rule;
  if (const auto checked = check_sizes(rule, keys); !checked) return checked.error();
  return rule;
}

}  // namespace millrace
