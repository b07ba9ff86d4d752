// SPDX-License-Identifier: Apache-2.0
#include "service/log/log.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <string>

namespace millrace {

namespace {

constexpr int lines_per_second = 4;       // for one event and level
constexpr std::size_t most_names = 16;    // in a sum
constexpr std::size_t longest_name = 64;  // bytes, in a sum

}  // namespace

void Log::info(std::string_view event, Fields fields, Time now) {
  write(LogLevel::info, event, fields, now);
}

void Log::warning(std::string_view event, Fields fields, Time now) {
  stats_.logged[LogLevel::warning].add();
  write(LogLevel::warning, event, fields, now);
}

void Log::error(std::string_view event, Fields fields, Time now) {
  stats_.logged[LogLevel::error].add();
  write(LogLevel::error, event, fields, now);
}

void Log::rare_info(std::string_view event, Fields fields) {
  write_line(LogLevel::info, event, fields);
}

void Log::rare_error(std::string_view event, Fields fields) {
  stats_.logged[LogLevel::error].add();
  write_line(LogLevel::error, event, fields);
}

Log::~Log() { sum_up(Time::max()); }

void Log::sum_up(Time now) try {
  for (auto& [key, event] : events_)
    if (now >= event.until) sum_up(key, event);
} catch (const std::bad_alloc&) {  // the next call tries again
}

// If there is no memory for the line, it is dropped; the caller has already counted it.
void Log::write(LogLevel level, std::string_view event, Fields fields, Time now) try {
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
  write_line(key.second, key.first, [&](LogLine& line) {
    line.number("held_back", event.held_back);
    if (!names.empty()) line.names(std::string(event.kind) + "s", names);
  });
  event.held_back = 0;
  event.names.clear();
}

void Log::write_line(LogLevel level, std::string_view event, Fields fields) {
  write_line(level, event, [&](LogLine& line) {
    for (const auto& [key, value] : fields) line.field(key, value);
  });
}

template <class Add>
void Log::write_line(LogLevel level, std::string_view event, const Add& add) {
  const LogOptions options = writer_.options();
  const auto line = [&](LogFormat format) {
    LogLine built(format, level, event);
    add(built);
    return std::move(built).done();
  };
  if (level >= LogLevel::warning) writer_.add_recent(line(LogFormat::json));
  if (level >= options.level) writer_.write(line(options.format));
}

}  // namespace millrace
