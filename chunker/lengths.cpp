// SPDX-License-Identifier: Apache-2.0
#include "chunker/lengths.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace millrace {
namespace {

// Parses the whole text as a plain number: no sign, no exponent, no "inf".
template <class Number>
std::optional<Number> parse(std::string_view text) {
  if (text.empty() || text.find_first_not_of("0123456789.") != text.npos) return std::nullopt;
  Number number{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return number;
}

std::optional<double> parse_seconds(std::string_view text) {
  // "us" and "ms" come before "s", which is their last letter.
  constexpr std::array<std::pair<std::string_view, double>, 5> units{
      {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"min", 60}, {"h", 3600}}};
  const auto unit =
      std::ranges::find_if(units, [text](const auto& each) { return text.ends_with(each.first); });
  if (unit == units.end()) return std::nullopt;
  const auto number = parse<double>(text.substr(0, text.size() - unit->first.size()));
  if (!number) return std::nullopt;
  return *number * unit->second;
}

}  // namespace

Result<std::uint32_t, std::string> parse_length(std::string_view text, double rate) {
  if (const auto seconds = parse_seconds(text)) {
    if (const auto frames = whole_frames(*seconds, rate)) return *frames;
    return "must be whole frames, at most " + std::to_string(max_window) + ": at " +
           readable(rate) + " frames per second it is " + readable(*seconds * rate);
  }
  const auto frames = parse<std::uint64_t>(text);
  if (frames && *frames <= max_window) return static_cast<std::uint32_t>(*frames);
  return "must be frames from 0 to " + std::to_string(max_window) +
         " (1600), or a time in us, ms, s, min or h without a space (\"100ms\", \"0.1s\")";
}

bool lacks_unit(std::string_view quoted) {
  return !quoted.empty() && quoted.find_first_not_of("0123456789") == quoted.npos;
}

std::optional<std::uint32_t> whole_frames(double seconds, double rate) {
  // The rounding error of decimal fractions and of rates such as 33.3333.
  constexpr double tolerance = 1e-4;
  const double frames = seconds * rate, whole = std::round(frames);
  if (!(whole >= 0 && whole <= max_window && std::abs(frames - whole) <= tolerance))
    return std::nullopt;
  return static_cast<std::uint32_t>(whole);
}

std::string readable(double number) {
  char text[32];
  const auto [end, error] =
      std::to_chars(text, text + sizeof text, number, std::chars_format::general, 9);
  return {text, end};
}

SpecError wrong(std::string_view key, std::string_view value, std::string_view sentence) {
  std::string message(key);
  message.append(" = \"").append(value).append("\" ").append(sentence);
  return {std::string(key), std::move(message)};
}

}  // namespace millrace
