// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

#include "base/queue.h"

namespace millrace {

// Where lines of the log go: stderr, by a thread of its own, so that a slow disk or a stopped
// terminal holds up nobody. Of what comes too fast the newest lines are dropped, and how many is
// said; what nobody reads any more is dropped in silence.
//
// Thread-safe. Its end waits until what it has is written, but not for a reader that does not read.
class LogWriter {
 public:
  // Does not own the descriptor.
  explicit LogWriter(int descriptor = STDERR_FILENO);
  ~LogWriter();

  // `line` without its newline.
  void write(std::string line);

 private:
  void run();
  // False where the end does not wait for it any longer.
  bool put(std::string line);

  int descriptor_;
  Queue<std::string> lines_{1024};
  std::atomic<std::uint64_t> dropped_{0};
  std::atomic<bool> ending_{false};
  std::jthread thread_;  // last: it uses the others
};

}  // namespace millrace
