// SPDX-License-Identifier: Apache-2.0
#include "chunker/spec.h"

#include <algorithm>
#include <array>

#include "chunker/lengths.h"
#include "chunker/presets.h"

namespace millrace {
namespace {

struct LengthKey {
  std::string_view name;
  std::uint32_t Spec::*member;
};
constexpr std::array lengths{
    LengthKey{"size", &Spec::size},   LengthKey{"step", &Spec::step},
    LengthKey{"first", &Spec::first}, LengthKey{"left", &Spec::left},
    LengthKey{"right", &Spec::right}, LengthKey{"min", &Spec::min},
};

template <class Enum>
struct Word {
  std::string_view name;
  Enum value;
};
template <class Enum>
constexpr Word<Enum> word(Enum value) {
  return {name_of(value), value};
}
constexpr std::array tails{word(Spec::Tail::every_start), word(Spec::Tail::cover),
                           word(Spec::Tail::drop)};
constexpr std::array aligns{word(Align::body), word(Align::packed)};
constexpr std::array pads{word(Pad::zero), word(Pad::repeat)};

constexpr std::string_view all_keys =
    "size, step, first, left, right, min, tail, align, pad or preset";

// "a, b or c"
template <class Named>
std::string names_of(const Named& all) {
  std::string text;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i > 0) text += i + 1 < all.size() ? ", " : " or ";
    text += all[i].name;
  }
  return text;
}

using Key = RuleKeys::value_type;
using Outcome = Result<void, SpecError>;

template <class Words, class Enum>
Outcome choose(const Key& key, const Words& words, Enum& into) {
  for (const auto& word : words) {
    if (word.name != key.second) continue;
    into = word.value;
    return {};
  }
  return wrong(key.first, key.second, "must be " + names_of(words));
}

Outcome apply(const Key& key, double rate, ChunkRule& rule) {
  const auto& [name, value] = key;
  if (name == "tail") return choose(key, tails, rule.spec.tail);
  if (name == "align") return choose(key, aligns, rule.align);
  if (name == "pad") return choose(key, pads, rule.pad);
  for (const LengthKey& length : lengths) {
    if (length.name != name) continue;
    const auto frames = parse_length(value, rate);
    if (!frames) return wrong(name, value, frames.error());
    rule.spec.*length.member = *frames;
    return {};
  }
  return wrong(name, value, "is unknown: the key must be " + std::string(all_keys));
}

const Key* find_key(const RuleKeys& keys, std::string_view name) {
  const auto found = std::ranges::find(keys, name, &Key::first);
  return found == keys.end() ? nullptr : &*found;
}

Result<ChunkRule, SpecError> preset_rule(const Key& key, const RuleTarget& target) {
  const Preset* preset = find_preset(key.second);
  if (preset == nullptr) return wrong("preset", key.second, "must be " + names_of(presets()));
  return rule_for(*preset, target);
}

Outcome check_companions(const Key& key, const RuleKeys& keys) {
  if (find_key(keys, key.first) != &key)
    return wrong(key.first, key.second, "repeats the key: each may be given once");
  const bool beside_preset = key.first == "preset" || key.first == "align" || key.first == "pad";
  if (!beside_preset && find_key(keys, "preset") != nullptr)
    return wrong(key.first, key.second,
                 "cannot stand beside preset: with it only align and pad may be given");
  return {};
}

Outcome check_width(const Spec& spec, std::string_view key, std::uint64_t size) {
  const std::uint64_t around = std::uint64_t{spec.left} + spec.right;
  if (size <= max_window && around + size <= max_window) return {};
  return wrong(key, std::to_string(size),
               "is too long: with left and right it must be at most " + std::to_string(max_window));
}

}  // namespace

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
  if (const auto checked = check(rule.spec); !checked) return checked.error();
  return rule;
}

Result<void, SpecError> check(const Spec& spec) {
  if (spec.size < 1) return wrong("size", "0", "must be at least 1 frame");
  const std::uint64_t first = spec.first > 0 ? spec.first : spec.size;
  const std::uint64_t step = spec.step > 0 ? spec.step : spec.size;
  if (first + step <= spec.size)
    return wrong("first", std::to_string(first),
                 "is too short: first + step must exceed size, " + std::to_string(spec.size) +
                     ", and step is " + std::to_string(step));
  return check_width(spec, first > spec.size ? "first" : "size",
                     std::max<std::uint64_t>(first, spec.size));
}

Result<void, SpecError> check_size(const Spec& spec, std::uint64_t size) {
  if (spec.step > 0)
    return wrong("step", std::to_string(spec.step), "must be 0 where sizes change");
  if (size < 1) return wrong("size", "0", "must be at least 1 frame");
  return check_width(spec, "size", size);
}

}  // namespace millrace
