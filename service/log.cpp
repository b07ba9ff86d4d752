// SPDX-License-Identifier: Apache-2.0
#include "service/log.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <string>

#include "service/config_value.h"
#include "service/wall_clock.h"

namespace millrace {

namespace {

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
             : quoted(value);
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

void Log::rare_info(std::string_view event, Fields fields) { write_line("info", event, fields, 0); }

void Log::rare_error(std::string_view event, Fields fields) {
  stats_.logged[LogLevel::error].add();
  write_line("error", event, fields, 0);
}

void Log::write(std::string_view level, std::string_view event, Fields fields, Time now) {
  using namespace std::chrono_literals;
  Event& known = events_[event];
  if (now < known.next) {
    ++known.held_back;
    return;
  }
  write_line(level, event, fields, known.held_back);
  known = {.next = now + 1s, .held_back = 0};
}

void Log::write_line(std::string_view level, std::string_view event, Fields fields,
                     std::uint64_t held_back) {
  std::string line = "time=" + time_of_day();
  line.append(" level=").append(level).append(" event=").append(shown(event));
  for (const auto& [key, value] : fields) line.append(" ").append(key) += "=" + shown(value);
  if (held_back > 0) line += " held_back=" + std::to_string(held_back);
  writer_.write(std::move(line));
}

}  // namespace millrace
