// SPDX-License-Identifier: Apache-2.0
#include "chunker/presets.h"

#include <algorithm>
#include <array>
#include <string>
#include <type_traits>

#include "chunker/lengths.h"

namespace millrace {
namespace {

constexpr RuleTarget audio_16k{.rate = 16000};
constexpr RuleTarget audio_24k{.rate = 24000};
constexpr RuleTarget features{.rate = 100, .features = true};

constexpr ChunkRule aligned(Spec spec) { return {spec, Align::body, Pad::zero}; }
constexpr ChunkRule packed(Spec spec) { return {spec, Align::packed, Pad::zero}; }

constexpr std::array table{
    // Silero VAD v5: 64 samples of context, 512 new samples.
    Preset{"silero-16k", audio_16k, aligned({.size = 512, .left = 64})},
    // FunASR chunk_size [5,10,5]: 10 low-frame-rate frames of 60 ms, and 10 cached ones.
    Preset{"funasr-600ms", audio_16k, aligned({.size = 9600, .left = 9600})},
    // The Mimi codec at 12.5 Hz.
    Preset{"moshi-80ms", audio_24k, aligned({.size = 1920})},
    // WeNet's runtime: chunk 16, subsampling 4, right context 6.
    Preset{"wenet-16", features, packed({.size = 64, .first = 67, .left = 3})},
    // icefall and sherpa-onnx Zipformer2: T = 32 + 13.
    Preset{"zipformer-32", features, packed({.size = 32, .right = 13})},
    // sherpa-onnx streaming Paraformer.
    Preset{"paraformer-60", features, packed({.size = 60, .right = 1})},
    // torchaudio's Emformer RNN-T base.
    Preset{"emformer-16", features, packed({.size = 16, .right = 4})},
    // NeMo cache-aware FastConformer [70,look-ahead], 8x: shift 8 * (look-ahead + 1), pre-encode
    // cache 9.
    Preset{"nemo-70-0", features, packed({.size = 8, .first = 1, .left = 9})},
    Preset{"nemo-70-1", features, packed({.size = 16, .first = 9, .left = 9})},
    Preset{"nemo-70-6", features, packed({.size = 56, .first = 49, .left = 9})},
    Preset{"nemo-70-13", features, packed({.size = 112, .first = 105, .left = 9})},
    // RETURNN chunking = "100:75".
    Preset{"returnn-100-75", features, packed({.size = 100, .step = 75})},
};

SpecError wrong_rate(const Preset& preset, const std::string& allowed) {
  return wrong("preset", preset.name, "takes " + allowed);
}

std::string described(const RuleTarget& target) {
  return (target.features ? "features at " : "audio at ") + readable(target.rate) +
         " frames per second";
}

// The spec of a preset in features, converted to samples of audio at `rate`.
Result<Spec, SpecError> in_samples(const Preset& preset, double rate) {
  const auto shift = whole_frames(0.010, rate), more_right = whole_frames(0.015, rate);
  const Spec& spec = preset.rule.spec;
  if (!shift || !more_right || *shift < 1 || *shift > max_window / spec.width() / 2)
    return wrong_rate(preset,
                      "features, or audio of a rate that gives whole frames in 10 ms and "
                      "in 15 ms, not " +
                          readable(rate));
  ChunkRule rule = preset.rule;
  for_each_key(rule, [&](std::string_view, auto& member) {
    if constexpr (std::is_same_v<decltype(member), std::uint32_t&>) member *= *shift;
  });
  rule.spec.right += *more_right;
  return rule.spec;
}

}  // namespace

std::span<const Preset> presets() { return table; }

const Preset* find_preset(std::string_view name) {
  const auto found = std::ranges::find(table, name, &Preset::name);
  return found == table.end() ? nullptr : &*found;
}

RuleTarget target_of(const RuleKeys& keys, std::optional<double> rate) {
  if (rate) return {.rate = *rate};
  for (const auto& [key, value] : keys)
    if (const Preset* preset = find_preset(value); key == "preset" && preset != nullptr)
      return preset->target;
  return {};
}

Result<ChunkRule, SpecError> rule_for(const Preset& preset, const RuleTarget& target) {
  ChunkRule rule = preset.rule;
  if (preset.target.features && !target.features) {
    const auto spec = in_samples(preset, target.rate);
    if (!spec) return spec.error();
    rule.spec = *spec;
  } else if (preset.target.features != target.features || preset.target.rate != target.rate) {
    return wrong_rate(preset, described(preset.target) + ", not " + described(target));
  }
  return rule;
}

}  // namespace millrace
