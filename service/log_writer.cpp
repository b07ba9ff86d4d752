// SPDX-License-Identifier: Apache-2.0
#include "service/log_writer.h"

#include <poll.h>

#include "base/quiet_thread.h"

namespace millrace {

namespace {

// A write to a pipe that poll calls ready does not block below PIPE_BUF.
constexpr std::size_t longest = 4000;

}  // namespace

// A quiet thread blocks SIGPIPE: a write to a pipe without a reader is then an error of that write,
// not the end of the program.
LogWriter::LogWriter(int descriptor)
    : descriptor_(descriptor), thread_(quiet_thread("log", [this] { run(); })) {}

LogWriter::~LogWriter() {
  ending_ = true;
  lines_.close();
}

void LogWriter::write(std::string line) {
  // Relaxed: a count orders nothing.
  if (lines_.try_push(std::move(line)) == Queue<std::string>::Pushed::full)
    dropped_.fetch_add(1, std::memory_order_relaxed);
}

void LogWriter::run() {
  while (auto line = lines_.pop_until(Time::max())) {
    if (!put(std::move(*line))) return;
    const auto dropped = dropped_.exchange(0, std::memory_order_relaxed);
    if (dropped > 0 && !put("event=\"log lines dropped\" count=" + std::to_string(dropped))) return;
  }
}

bool LogWriter::put(std::string line) {
  if (line.size() > longest) line.resize(longest);
  line += '\n';
  pollfd ready{descriptor_, POLLOUT, 0};
  constexpr int patience = 100;  // milliseconds
  while (poll(&ready, 1, patience) != 1)
    if (ending_) return false;
  // Where the log cannot be written there is nowhere to say so.
  [[maybe_unused]] const auto ignored = ::write(descriptor_, line.data(), line.size());
  return true;
}

}  // namespace millrace
