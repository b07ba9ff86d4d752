// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "monitoring/service_stats.h"

namespace millrace {

enum class LogFormat : std::uint8_t { text, json };

// The keys of the configuration table [log].
struct LogOptions {
  LogLevel level = LogLevel::info;  // lowest level that is written
  LogFormat format = LogFormat::text;

  bool operator==(const LogOptions&) const = default;
};

// Builds one line of the log, field by field:
//
//   time=2026-01-31T12:00:00.123Z level=warning event="worker lost" pipeline=asr worker=gpu-0
//   {"time":"2026-01-31T12:00:00.123Z","level":"warning","event":"worker lost","pipeline":"asr"}
//
// Values may be any bytes. In both formats the result is one line of UTF-8 without control
// characters. In JSON, a byte that is not UTF-8 becomes U+FFFD. Confined to one thread.
class LogLine {
 public:
  LogLine(LogFormat format, LogLevel level, std::string_view event);

  // A long `value` is cut. The field is left out if `value` is empty or if the line would exceed
  // `longest`. Requires: `key` is a literal that needs no escapes.
  LogLine& field(std::string_view key, std::string_view value);
  LogLine& number(std::string_view key, std::uint64_t value);
  // A list of names, which the caller bounds. Left out if the line would exceed `longest`.
  LogLine& names(std::string_view key, std::string_view names);

  // The line without a newline: at most `longest` bytes.
  std::string done() &&;

  // When poll reports a pipe as writable, a write of up to PIPE_BUF = 4096 bytes does not block.
  static constexpr std::size_t longest = 4000;

 private:
  // Requires: `value` is written as the format needs it.
  void add(std::string_view key, std::string_view value);

  const LogFormat format_;
  std::string line_;
};

// `text` as a JSON string, cut after at most `most` bytes.
std::string json_text(std::string_view text, std::size_t most);

}  // namespace millrace
