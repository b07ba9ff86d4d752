// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "monitoring/service_stats.h"

namespace millrace {

enum class LogFormat : std::uint8_t { text, json };

// What the log writes, and how. The keys of [log].
struct LogOptions {
  LogLevel level = LogLevel::info;  // the least that is written
  LogFormat format = LogFormat::text;

  bool operator==(const LogOptions&) const = default;
};

// One line of the log, field by field:
//
//   time=2026-01-31T12:00:00.123Z level=warning event="worker lost" pipeline=asr worker=gpu-0
//   {"time":"2026-01-31T12:00:00.123Z","level":"warning","event":"worker lost","pipeline":"asr"}
//
// Values may be any bytes: in both formats a line stays a line, is UTF-8, and sends no control
// character to a terminal. In JSON, a byte that is not UTF-8 becomes U+FFFD. Keys are literals.
// Confined to one thread.
class LogLine {
 public:
  LogLine(LogFormat format, LogLevel level, std::string_view event);

  // Left out if `value` is empty, or if the line would pass `longest`; cut if it is long.
  LogLine& field(std::string_view key, std::string_view value);
  LogLine& number(std::string_view key, std::uint64_t value);
  // A list of names, bounded by the caller.
  LogLine& names(std::string_view key, std::string_view names);

  // Without a newline, at most `longest` bytes.
  std::string done() &&;

  // A write to a pipe that poll calls ready does not block below PIPE_BUF, 4096 bytes.
  static constexpr std::size_t longest = 4000;

 private:
  // `value` as the format writes it.
  void add(std::string_view key, std::string_view value);

  const LogFormat format_;
  std::string line_;
};

// As a JSON string; cut behind at most `most` bytes.
std::string json_text(std::string_view text, std::size_t most);

}  // namespace millrace
