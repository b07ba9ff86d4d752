// SPDX-License-Identifier: Apache-2.0
#include "service/config/chunk_options.h"

#include "chunker/lengths.h"
#include "chunker/sizes_text.h"
#include "input/voice_detector.h"
#include "service/log/printable.h"

namespace millrace {

namespace {

using By = EndpointRule::By;

// The text of `sizes`: a list of lengths, or a table with a range.
std::string read_sizes(Section& chunk) {
  if (!chunk.has_table("sizes"))
    return sizes_text(chunk.lengths(
        "sizes",
        "must be a list of lengths, like [\"80ms\", \"160ms\"], or with rule = \"random\" a range, "
        "like { from = \"40ms\", to = \"1s\", step = \"40ms\" }"));
  Section range = chunk.section("sizes", "");
  std::array<std::string, 3> texts;
  constexpr std::array<std::string_view, 3> keys = {"from", "to", "step"};
  for (std::size_t i = 0; i < keys.size(); ++i) {
    for (auto& [key, text] : range.texts({keys[i]})) texts[i] = std::move(text);
    if (!range.has(keys[i])) range.wrong(keys[i], "is missing: a range needs from, to and step");
  }
  range.refuse_unknown();
  return sizes_text(texts[0], texts[1], texts[2]);
}

RuleKeys read_keys(Section& chunk) {
  std::vector<std::string_view> names = rule_keys();
  std::erase(names, "sizes");
  RuleKeys keys = chunk.texts(names);
  if (chunk.has("sizes")) keys.emplace_back("sizes", read_sizes(chunk));
  return keys;
}

// The chunker's message without the key and the value, which the caller adds.
std::string allowed_by(const SpecError& error, const RuleKeys& keys) {
  for (const auto& [key, value] : keys) {
    const std::string start = key + " = \"" + value + "\" ";
    if (key == error.key && error.message.starts_with(start))
      return error.message.substr(start.size());
  }
  return error.message;
}

// The length of this key in frames, at least 1.
std::uint32_t read_length(Section& section, std::string_view key, const std::string& fallback,
                          double rate) {
  const bool absent = !section.has(key);
  const auto texts = section.texts({key});
  const auto frames = parse_length(texts.empty() ? fallback : texts.front().second, rate);
  if (frames && *frames >= 1) return *frames;
  const std::string reason = (frames ? "must be at least 1 frame" : frames.error()) +
                             (fallback == "off" ? ", or \"off\"" : "");
  section.wrong(key,
                absent ? "the default is " + in_quotes(fallback) + ", which " + reason : reason);
  return 1;
}

bool is_off(Section& section, std::string_view key) {
  const auto texts = section.texts({key});
  return texts.empty() || texts.front().second == "off";
}

bool has_detector(const FrameType& frames) {
  return !frames.features && VoiceDetector::has_rate(frames.rate);
}

void read_detector(Section& section, const FrameType& frames, EndpointRule& rule) {
  if (!has_detector(frames))
    section.wrong("by",
                  "\"vad\" (the default) needs audio at 8000, 16000, 32000 or 48000 frames per "
                  "second; other pipelines can have \"worker\" or \"length\"");
  rule.silence = read_length(section, "silence", std::string(default_silence), frames.rate);
  if (!is_off(section, "before_speech"))
    rule.before_speech = read_length(section, "before_speech", "off", frames.rate);
  rule.sensitivity = section.count("sensitivity", 2, 0, 3);
}

}  // namespace

ChunkRule read_chunk(Section& section, const FrameType& frames) {
  Section chunk = section.section("chunk", "a table, like { size = \"100ms\" }");
  RuleKeys keys = read_keys(chunk);
  chunk.refuse_unknown();
  const bool absent = !section.has("chunk");
  if (absent) keys.emplace_back("size", "100ms");
  const auto rule = parse_rule(keys, {.rate = frames.rate, .features = frames.features});
  if (rule) return *rule;
  if (absent)
    section.wrong("chunk",
                  "the default is { size = \"100ms\" }, which " + allowed_by(rule.error(), keys));
  else
    chunk.wrong(rule.error().key, allowed_by(rule.error(), keys));
  return {};
}

std::optional<EndpointRule> read_endpoint(Section& section, const FrameType& frames) {
  if (!section.has("endpoint")) return std::nullopt;
  Section endpoint =
      section.section("endpoint", "a table, like { by = \"vad\", silence = \"800ms\" }");
  EndpointRule rule;
  const std::string by = endpoint.one_of("by", "vad", {"vad", "worker", "length"});
  rule.by = value_named<By>(by).value_or(By::vad);
  if (rule.by == By::vad) read_detector(endpoint, frames, rule);
  for (const std::string_view key : {"silence", "before_speech", "sensitivity"})
    if (endpoint.has(key) && rule.by != By::vad)
      endpoint.wrong(key, "cannot be set with by = " + in_quotes(by) + ": only with by = \"vad\"");
  rule.max = read_length(endpoint, "max", std::string(default_longest_segment), frames.rate);
  if (endpoint.one_of("on_endpoint", "segment", {"segment", "reset"}) == "reset")
    rule.on_endpoint = EndpointRule::On::reset;
  endpoint.refuse_unknown();
  return rule;
}

}  // namespace millrace
