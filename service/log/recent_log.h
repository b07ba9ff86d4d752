// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <iterator>
#include <string>
#include <vector>

#include "service/log/log_writer.h"

namespace millrace {

// The last warnings and errors of all threads, for the page /log: at most 100, each at most
// LogLine::longest bytes. Confined to one thread; the writer outlives it.
class RecentLog {
 public:
  explicit RecentLog(LogWriter& writer) : writer_(writer) {}

  // Takes the lines since the last call, to be made once a second: until then, 256 can wait.
  void collect() {
    writer_.take_remembered(new_);
    lines_.insert(lines_.end(), std::make_move_iterator(new_.begin()),
                  std::make_move_iterator(new_.end()));
    while (lines_.size() > most) lines_.pop_front();
  }

  // JSON objects, the oldest first.
  const std::deque<std::string>& lines() const { return lines_; }
  const LogStats& stats() const { return writer_.stats(); }

  static constexpr std::size_t most = 100;

 private:
  LogWriter& writer_;
  std::vector<std::string> new_;
  std::deque<std::string> lines_;
};

}  // namespace millrace
