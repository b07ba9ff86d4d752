// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/time.h"
#include "service/log_writer.h"
#include "service/stats.h"

namespace millrace {

// One thread's log: lines of key=value,
//
//   time=2026-01-31T12:00:00.123Z level=warning event="worker lost" pipeline=asr worker=gpu-0
//
// A line that concerns a stream has the field `stream`. Values are what peers sent: they are
// quoted and cut so that a line stays a line. The same event is written at most once a second, the
// next one says how many were held back; warnings and errors count all the same.
//
// Confined to one thread, like its stats; the writer is shared and outlives it.
class Log {
 public:
  using Fields = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  Log(LogWriter& writer, ThreadStats& stats) : writer_(writer), stats_(stats) {}

  // `event` is a literal: what happened, in a few words.
  void info(std::string_view event, Fields fields, Time now = Clock::now());
  void warning(std::string_view event, Fields fields, Time now = Clock::now());
  void error(std::string_view event, Fields fields, Time now = Clock::now());
  // Never held back: of what happens a few times in the life of a process.
  void rare_info(std::string_view event, Fields fields);
  void rare_error(std::string_view event, Fields fields);

 private:
  struct Event {
    Time next;  // when it may be written again
    std::uint64_t held_back = 0;
  };

  void write(std::string_view level, std::string_view event, Fields fields, Time now);
  void write_line(std::string_view level, std::string_view event, Fields fields,
                  std::uint64_t held_back);

  LogWriter& writer_;
  ThreadStats& stats_;
  std::unordered_map<std::string_view, Event> events_;
};

}  // namespace millrace
