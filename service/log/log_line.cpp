// SPDX-License-Identifier: Apache-2.0
#include "service/log/log_line.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>

#include "schemas/text.h"
#include "service/log/printable.h"
#include "service/log/wall_clock.h"

namespace millrace {

namespace {

// Limits in bytes of a value: in text before escaping, in JSON after it. Reasons (`why`) are often
// sentences, so they may be longer.
struct Longest {
  std::size_t text, json;
};
constexpr Longest longest_of(std::string_view key) {
  return key == "why" ? Longest{300, 1500} : Longest{80, 400};
}
constexpr std::size_t longest_names = 2500;

std::string time_of_day() {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(wall_clock()).count();
  const std::time_t seconds = ms / 1000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[40];
  const auto length = std::strftime(text, sizeof text, "%FT%T", &utc);
  std::snprintf(text + length, sizeof text - length, ".%03dZ", static_cast<int>(ms % 1000));
  return text;
}

// A plain word stays as it is; any other value is put in quotes.
std::string shown(std::string_view value, std::size_t most) {
  const auto plain = [](char c) { return c > ' ' && c != '"' && c != '=' && c != '\\' && c < 127; };
  return !value.empty() && value.size() <= 64 && std::ranges::all_of(value, plain)
             ? std::string(value)
             : in_quotes(value, most);
}

std::string escaped(char32_t code) {
  char text[16];
  if (code < 0x10000) {
    std::snprintf(text, sizeof text, "\\u%04x", static_cast<unsigned>(code));
  } else {  // a surrogate pair
    const auto rest = static_cast<unsigned>(code - 0x10000);
    std::snprintf(text, sizeof text, "\\u%04x\\u%04x", 0xd800 + (rest >> 10),
                  0xdc00 + (rest & 0x3ff));
  }
  return text;
}

}  // namespace

std::string json_text(std::string_view text, std::size_t most) {
  std::string out = "\"";
  while (!text.empty()) {
    const auto [size, code] = first_character(text);
    std::string next(text.substr(0, size));
    if (size == 0)
      next = "\ufffd";
    else if (!is_printable(code))
      next = escaped(code);
    else if (code == '"' || code == '\\')
      next.insert(0, 1, '\\');
    if (out.size() + next.size() > most) return out + "...\"";
    out += next;
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return out + '"';
}

LogLine::LogLine(LogFormat format, LogLevel level, std::string_view event) : format_(format) {
  field("time", time_of_day()).field("level", name_of(level)).field("event", event);
}

LogLine& LogLine::field(std::string_view key, std::string_view value) {
  const Longest most = longest_of(key);
  if (!value.empty())
    add(key, format_ == LogFormat::json ? json_text(value, most.json) : shown(value, most.text));
  return *this;
}

LogLine& LogLine::number(std::string_view key, std::uint64_t value) {
  add(key, std::to_string(value));
  return *this;
}

LogLine& LogLine::names(std::string_view key, std::string_view names) {
  add(key, json_text(names, longest_names));
  return *this;
}

void LogLine::add(std::string_view key, std::string_view value) {
  constexpr std::size_t around = 6;  // quotes, colon, comma, braces
  if (line_.size() + key.size() + value.size() + around > longest) return;
  if (format_ == LogFormat::json) {
    line_.append(line_.empty() ? "{\"" : ",\"").append(key).append("\":").append(value);
  } else {
    line_.append(line_.empty() ? "" : " ").append(key).append("=").append(value);
  }
}

std::string LogLine::done() && {
  if (format_ == LogFormat::json) line_ += '}';
  return std::move(line_);
}

}  // namespace millrace
