// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <iterator>
#include <string>
#include <vector>

#include "service/log/log_writer.h"

namespace millrace {

// The last warnings and errors of all threads, for the page /log: at most 100 lines, each at most
// LogLine::longest bytes. Confined to one thread. The writer must outlive it.
class RecentLog {
 public:
  explicit RecentLog(LogWriter& writer) : writer_(writer) {}

  // Adds the lines since the last call. Call it once a second: at most 256 lines wait for it.
  void collect() {
    writer_.take_recent(new_);
    lines_.insert(lines_.end(), std::make_move_iterator(new_.begin()),
                  std::make_move_iterator(new_.end()));
    while (lines_.size() > most) lines_.pop_front();
  }

  // Each line is a JSON object; the oldest comes first.
  const std::deque<std::string>& lines() const { return lines_; }
  const LogStats& stats() const { return writer_.stats(); }

  static constexpr std::size_t most = 100;

 private:
  LogWriter& writer_;
  std::vector<std::string> new_;
  std::deque<std::string> lines_;
};

}  // namespace millrace
