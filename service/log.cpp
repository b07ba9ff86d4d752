// SPDX-License-Identifier: Apache-2.0
#include "service/log.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <new>
#include <string>

#include "service/config_value.h"
#include "service/wall_clock.h"

namespace millrace {

namespace {

constexpr int lines_per_second = 4;       // of one event and level
constexpr std::size_t most_names = 16;    // in a sum
constexpr std::size_t longest_name = 64;  // in a sum, in bytes

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

// Plain words as they are, everything else in quotes.
std::string shown(std::string_view value) {
  const auto plain = [](char c) { return c > ' ' && c != '"' && c != '=' && c != '\\' && c < 127; };
  return !value.empty() && value.size() <= 64 && std::ranges::all_of(value, plain)
             ? std::string(value)
             : in_quotes(value);
}

std::string head(std::string_view level, std::string_view event) {
  std::string line = "time=" + time_of_day();
  line.append(" level=").append(level).append(" event=").append(shown(event));
  return line;
}

}  // namespace

void Log::info(std::string_view event, Fields fields, Time now) {
  write("info", event, fields, now);
}

void Log::warning(std::string_view event, Fields fields, Time now) {
  stats_.logged[LogLevel::warning].add();
  write("warning", event, fields, now);
}

void Log::error(std::string_view event, Fields fields, Time now) {
  stats_.logged[LogLevel::error].add();
  write("error", event, fields, now);
}

void Log::rare_info(std::string_view event, Fields fields) { write_line("info", event, fields); }

void Log::rare_error(std::string_view event, Fields fields) {
  stats_.logged[LogLevel::error].add();
  write_line("error", event, fields);
}

Log::~Log() { sum_up(Time::max()); }

void Log::sum_up(Time now) try {
  for (auto& [key, event] : events_)
    if (now >= event.until) sum_up(key, event);
} catch (const std::bad_alloc&) {  // later
}

// A line for which there is no memory is dropped: it counts all the same.
void Log::write(std::string_view level, std::string_view event, Fields fields, Time now) try {
  const Key key{event, level};
  Event& known = events_[key];
  if (now >= known.until) {
    sum_up(key, known);
    known.until = now + std::chrono::seconds(1);
    known.written = 0;
  }
  if (known.written == lines_per_second) return hold_back(known, fields);
  ++known.written;
  write_line(level, event, fields);
} catch (const std::bad_alloc&) {
}

void Log::hold_back(Event& event, Fields fields) {
  ++event.held_back;
  for (const auto& [key, value] : fields) {
    if ((key != "worker" && key != "stream") || value.empty()) continue;
    const std::string_view name = value.substr(0, longest_name);
    if (event.names.size() == most_names || std::ranges::count(event.names, name) > 0) return;
    event.kind = key;
    event.names.emplace_back(name);
    return;
  }
}

void Log::sum_up(const Key& key, Event& event) {
  if (event.held_back == 0) return;
  std::string names;
  for (const std::string& one : event.names) names += (names.empty() ? "" : ", ") + one;
  std::string line = head(key.second, key.first) + " held_back=" + std::to_string(event.held_back);
  if (!names.empty()) line.append(" ").append(event.kind) += "s=" + toml_string(names);
  writer_.write(std::move(line));
  event.held_back = 0;
  event.names.clear();
}

void Log::write_line(std::string_view level, std::string_view event, Fields fields) {
  std::string line = head(level, event);
  for (const auto& [key, value] : fields)
    if (!value.empty()) line.append(" ").append(key) += "=" + shown(value);
  writer_.write(std::move(line));
}

}  // namespace millrace
