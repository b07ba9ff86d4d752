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

// Where lines of the log go: stderr, by a thread of its own, so that a slow or full disk or a
// stopped terminal holds up no other thread. If lines come too fast, the newest are dropped. Lines
// that are dropped or cannot be written are counted; a line says how many as soon as it can.
//
// Thread-safe. Its end waits until what it has is written, but not for a reader that does not read.
class LogWriter {
 public:
  // Does not own the descriptor.
  explicit LogWriter(const LogOptions& options = {}, int descriptor = STDERR_FILENO);
  ~LogWriter();

  // For the lines from now on.
  LogOptions options() const { return options_.load(std::memory_order_relaxed); }
  void set_options(const LogOptions& options) {
    options_.store(options, std::memory_order_relaxed);
  }

  // `line` without its newline.
  void write(std::string line);

  // Keeps a line for take_remembered(); if too many wait there, it is dropped.
  void remember(std::string line);
  // The lines since the last call. Called by one thread.
  void take_remembered(std::vector<std::string>& into) { remembered_.drain(into); }

  const LogStats& stats() const { return stats_; }

 private:
  enum class Put { written, failed, given_up };  // given up: it stops, and no reader comes

  void run();
  Put put(std::string line);
  // `failed` lines, and those that came too fast since the last call.
  void count_dropped(std::uint64_t failed);

  const int descriptor_;
  std::atomic<LogOptions> options_;  // relaxed: it orders nothing
  Queue<std::string> lines_{1024}, remembered_{256};
  std::atomic<std::uint64_t> overflowed_{0};
  std::atomic<bool> ending_{false};
  LogStats stats_;
  std::uint64_t unreported_ = 0;  // of the thread: lines dropped since the last report
  bool torn_ = false;             // of the thread: the last line is incomplete
  std::jthread thread_;           // last: it uses the others
};

}  // namespace millrace
