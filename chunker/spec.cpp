// SPDX-License-Identifier: Apache-2.0
#include "chunker/spec.h"

#include <algorithm>
#include <optional>
#include <span>

#include "chunker/lengths.h"
#include "chunker/presets.h"

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

Outcome apply(const Key& key, double rate, ChunkRule& rule) {
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

Outcome check_width(const Spec& spec, std::string_view key, std::uint64_t size) {
  const std::uint64_t around = std::uint64_t{spec.left} + spec.right;
  if (size <= max_window && around + size <= max_window) return {};
  return wrong(key, std::to_string(size),
               "is too long: with left and right it must be at most " + std::to_string(max_window));
}

}  // namespace

std::vector<std::string_view> rule_keys() {
  std::vector<std::string_view> names;
  const ChunkRule rule;
  for_each_key(rule, [&](std::string_view name, const auto&) { names.push_back(name); });
  names.push_back("preset");
  return names;
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
  return rule;
}

Result<void, SpecError> Spec::check() const {
  if (size < 1) return wrong("size", "0", "must be at least 1 frame");
  const std::uint64_t first_size = first_body(size), advanced = step_of(size);
  if (first_size + advanced <= size)
    return wrong("first", std::to_string(first_size),
                 "is too short: first + step must exceed size; size is " + std::to_string(size) +
                     " and step is " + std::to_string(advanced));
  return check_width(*this, first_size > size ? "first" : "size",
                     std::max<std::uint64_t>(first_size, size));
}

Spec ChunkRule::chunker_spec() const {
  Spec cut = spec;
  if (!sizes.sizes.empty()) cut.first = 0;
  return cut;
}

std::uint32_t ChunkRule::first_body(std::uint32_t size) const {
  if (spec.first == 0) return size;
  return sizes.sizes.empty() ? spec.first : size + spec.first - spec.size;
}

std::uint32_t ChunkRule::width_of(std::uint32_t size) const {
  return spec.left + std::max(size, first_body(size)) + spec.right;
}

std::uint32_t ChunkRule::shortest_step() const {
  if (sizes.sizes.empty()) return spec.step_of(spec.size);
  const std::uint32_t size = sizes.sizes.smallest();
  return std::min(size, first_body(size));
}

Result<void, SpecError> Spec::check_size(std::uint64_t body) const {
  if (step > 0) return wrong("step", std::to_string(step), "must be 0 if sizes change");
  if (body < 1) return wrong("size", "0", "must be at least 1 frame");
  return check_width(*this, "size", body);
}

}  // namespace millrace
