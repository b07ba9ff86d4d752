// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/index/manifest_fields.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

namespace millrace::training {
namespace {

constexpr double most_seconds = 1e9;

constexpr std::array<std::string_view, 34> refused{
    "start",        "end",          "begin",         "stop",
    "start_time",   "end_time",     "begin_time",    "stop_time",
    "time_start",   "time_end",     "start_s",       "end_s",
    "start_sec",    "end_sec",      "start_ms",      "end_ms",
    "start_frame",  "end_frame",    "begin_frame",   "stop_frame",
    "frame_offset", "first_frame",  "last_frame",    "start_sample",
    "end_sample",   "begin_sample", "sample_offset", "segment_start",
    "segment_end",  "channel",      "channel_id",    "channel_selector",
    "onset",        "offset_ms"};

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

bool is_refused_field(std::string_view field) {
  const auto same = [](char a, char b) { return a == std::tolower(static_cast<unsigned char>(b)); };
  return std::ranges::any_of(refused,
                             [&](auto name) { return std::ranges::equal(name, field, same); });
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
