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

// The log of one thread: writes a line for each event (log_line.h). docs/log.md lists the events.
// If a line concerns a stream or a worker, its field `stream` or `worker` has the name.
//
// At most four lines per second are written for one event and level. Further ones are held back;
// when the second is over, one line has their number and their names. Each warning and error is
// counted, even if its line is held back or there is no memory for it.
//
// Confined to one thread, like its stats. The writer is shared and must outlive it.
class Log {
 public:
  using Fields = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  Log(LogWriter& writer, ThreadStats& stats) : writer_(writer), stats_(stats) {}
  // Writes the sums of all lines that are held back.
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // `event` names the event in a few words. Requires: it is a literal.
  void info(std::string_view event, Fields fields, Time now = Clock::now());
  void warning(std::string_view event, Fields fields, Time now = Clock::now());
  void error(std::string_view event, Fields fields, Time now = Clock::now());
  // Never held back: for events that happen a few times in the life of a process.
  void rare_info(std::string_view event, Fields fields);
  void rare_error(std::string_view event, Fields fields);

  // Writes a line for each event with lines held back in a second that is over: their number and
  // their names. Call it about once a second.
  void sum_up(Time now = Clock::now());

 private:
  using Key = std::pair<std::string_view, LogLevel>;  // event and level
  struct Event {
    Time until = {};  // end of the second that `written` counts
    int written = 0;
    std::uint64_t held_back = 0;
    std::string_view kind = {};           // the kind of `names`: worker or stream
    std::vector<std::string> names = {};  // names in the lines held back, each once; bounded
  };

  void write(LogLevel level, std::string_view event, Fields fields, Time now);
  void hold_back(Event& event, Fields fields);
  void sum_up(const Key& key, Event& event);
  void write_line(LogLevel level, std::string_view event, Fields fields);
  // Calls `add` to add the fields to the line: in the format of the log, and as JSON for /log.
  template <class Add>
  void write_line(LogLevel level, std::string_view event, const Add& add);

  LogWriter& writer_;
  ThreadStats& stats_;
  std::map<Key, Event> events_;
};

}  // namespace millrace
