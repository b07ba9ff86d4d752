// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"
#include "monitoring/service_stats.h"
#include "service/log/log_line.h"
#include "service/log/log_writer.h"

namespace millrace {

// One thread's log: a line for each event (log_line.h). A line that concerns a stream or a worker
// has its name in the field `stream` or `worker`. Of one event and level at most four lines a
// second are written. Further ones are summed up when the second is over, in a line with their
// number and their names. Warnings and errors count all the same, also where there is no memory to
// write them. docs/log.md has all events.
//
// Confined to one thread, like its stats; the writer is shared and outlives it.
class Log {
 public:
  using Fields = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  Log(LogWriter& writer, ThreadStats& stats) : writer_(writer), stats_(stats) {}
  // Sums up all that was held back.
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // `event` is a literal: what happened, in a few words.
  void info(std::string_view event, Fields fields, Time now = Clock::now());
  void warning(std::string_view event, Fields fields, Time now = Clock::now());
  void error(std::string_view event, Fields fields, Time now = Clock::now());
  // Never held back: of what happens a few times in the life of a process.
  void rare_info(std::string_view event, Fields fields);
  void rare_error(std::string_view event, Fields fields);

  // Sums up what was held back in seconds that are over. To be called about once a second.
  void sum_up(Time now = Clock::now());

 private:
  using Key = std::pair<std::string_view, LogLevel>;  // event and level
  struct Event {
    Time until = {};  // the end of the second in which its lines count
    int written = 0;  // in it
    std::uint64_t held_back = 0;
    std::string_view kind = {};           // of the names: worker or stream
    std::vector<std::string> names = {};  // of those held back, each once; bounded
  };

  void write(LogLevel level, std::string_view event, Fields fields, Time now);
  void hold_back(Event& event, Fields fields);
  void sum_up(const Key& key, Event& event);
  void write_line(LogLevel level, std::string_view event, Fields fields);
  // Lets `add` put the fields to the line: in the format of the log, and as JSON for /log.
  template <class Add>
  void write_line(LogLevel level, std::string_view event, const Add& add);

  LogWriter& writer_;
  ThreadStats& stats_;
  std::map<Key, Event> events_;
};

}  // namespace millrace
