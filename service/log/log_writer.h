// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "base/queue.h"
#include "service/log/log_line.h"

namespace millrace {

// Writes lines of the log to stderr on its own thread, so that a slow or full disk or a stopped
// terminal does not block the other threads. If lines come too fast, the newest are dropped. Lines
// that are dropped or cannot be written are counted, and a line reports their number as soon as
// writing works again.
//
// Thread-safe. The destructor waits until the queued lines are written, but not for a reader that
// has stopped reading.
class LogWriter {
 public:
  // Does not own the descriptor.
  explicit LogWriter(const LogOptions& options = {}, int descriptor = STDERR_FILENO);
  ~LogWriter();

  // Apply to lines that are built from now on.
  LogOptions options() const { return options_.load(std::memory_order_relaxed); }
  void set_options(const LogOptions& options) {
    options_.store(options, std::memory_order_relaxed);
  }

  // Requires: `line` has no newline at its end.
  void write(std::string line);

  // Queues a line for take_recent(). If 256 lines wait there, it is dropped.
  void add_recent(std::string line);
  // Replaces `into` by the lines since the last call. Call it on one thread only.
  void take_recent(std::vector<std::string>& into) { recent_.drain(into); }

  const LogStats& stats() const { return stats_; }

 private:
  enum class Written { whole, failed, stopped };  // stopped: the writer ends and cannot write

  void run();
  Written write_line(std::string line);
  // Counts `failed` lines, and the lines that came too fast since the last call.
  void count_dropped(std::uint64_t failed);

  const int descriptor_;
  std::atomic<LogOptions> options_;  // relaxed: guards no other data
  Queue<std::string> lines_{1024}, recent_{256};
  std::atomic<std::uint64_t> overflowed_{0};
  std::atomic<bool> ending_{false};
  LogStats stats_;
  // Used by the thread only.
  std::uint64_t unreported_ = 0;  // lines dropped since the last report
  bool torn_ = false;             // the last line in the file is incomplete
  std::jthread thread_;           // last: it uses the other members
};

}  // namespace millrace
