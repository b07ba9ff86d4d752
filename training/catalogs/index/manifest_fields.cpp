// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/index/manifest_fields.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>
#include <vector>

namespace millrace::training {
namespace {

constexpr double most_seconds = 1e9;

// A field chooses a part of a file if one of its words does, and the others only say more about it:
// start_ms and supervisionStart, but not end_of_sentence.
constexpr std::array<std::string_view, 14> choosing{
    "start",  "starttime", "begin", "begintime", "end",   "endtime", "stop",
    "offset", "onset",     "from",  "to",        "first", "last",    "channel"};
constexpr std::array<std::string_view, 8> choosing_in_lists{
    "segment", "seg", "time", "span", "interval", "range", "channels", "region"};
constexpr std::array<std::string_view, 30> saying_more{
    "s",     "sec",          "secs",      "second",      "seconds",   "ms",
    "msec",  "milliseconds", "us",        "ns",          "samples",   "sample",
    "frame", "frames",       "timestamp", "t",           "position",  "pos",
    "index", "idx",          "id",        "selector",    "clip",      "cut",
    "audio", "wav",          "file",      "supervision", "utterance", "utt"};

// The words of start_time, startTime or Start-Time: start and time.
std::vector<std::string> words_of(std::string_view field) {
  std::vector<std::string> words;
  bool begins = true, was_lower = false;
  for (const char c : field) {
    const bool upper = c >= 'A' && c <= 'Z', lower = c >= 'a' && c <= 'z';
    if (upper || lower) {
      if (begins || (upper && was_lower)) words.emplace_back();
      words.back() += static_cast<char>(c | 0x20);
    }
    begins = !upper && !lower;
    was_lower = lower;
  }
  return words;
}

bool has(std::span<const std::string_view> words, const std::string& word) {
  return std::ranges::count(words, word) > 0;
}

// Without spaces at both ends, and without a plus.
std::string_view trimmed(std::string_view text) {
  constexpr std::string_view spaces = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(spaces), text.size()));
  text = text.substr(0, text.find_last_not_of(spaces) + 1);
  if (text.starts_with('+')) text.remove_prefix(1);
  return text;
}

}  // namespace

bool is_part_field(std::string_view field) { return field == "offset" || field == "duration"; }

std::string set_part_field(ManifestEntry& entry, std::string_view field, double value) {
  const bool is_offset = field == "offset";
  if (!(is_offset ? value >= 0 : value > 0) || value > most_seconds)
    return "\"" + std::string(field) + "\" must be a number of seconds" +
           (is_offset ? "" : ", more than 0");
  if (is_offset)
    entry.offset = value;
  else
    entry.duration = value;
  return {};
}

bool is_refused_field(std::string_view field, bool is_list) {
  if (is_part_field(field)) return false;
  bool chooses = false;
  for (const std::string& word : words_of(field)) {
    const bool in_lists = has(choosing_in_lists, word);
    if (has(choosing, word) || (is_list && in_lists))
      chooses = true;
    else if (!in_lists && !has(saying_more, word))
      return false;
  }
  return chooses;
}

std::string refused_field_text(std::string_view field) {
  return "\"" + std::string(field) +
         "\" is not supported: a part of a file is \"offset\" and \"duration\" in seconds; cut the "
         "file, or remove or rename the field";
}

std::optional<double> number_in(std::string_view text) {
  text = trimmed(text);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

bool is_number_or_time(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('-')) text.remove_prefix(1);
  if (text.starts_with('.')) text.remove_prefix(1);
  return !text.empty() && text.front() >= '0' && text.front() <= '9';
}

}  // namespace millrace::training
