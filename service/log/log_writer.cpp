// SPDX-License-Identifier: Apache-2.0
#include "service/log/log_writer.h"

#include <poll.h>

#include <utility>

#include "base/quiet_thread.h"

namespace millrace {

// A quiet thread blocks SIGPIPE: a write to a pipe without a reader then fails, and does not end
// the process.
LogWriter::LogWriter(const LogOptions& options, int descriptor)
    : descriptor_(descriptor), options_(options), thread_(quiet_thread("log", [this] { run(); })) {}

LogWriter::~LogWriter() {
  ending_ = true;
  lines_.close();
}

void LogWriter::write(std::string line) {
  // Relaxed: the count guards no other data.
  if (lines_.try_push(std::move(line)) == Queue<std::string>::Pushed::full)
    overflowed_.fetch_add(1, std::memory_order_relaxed);
}

void LogWriter::add_recent(std::string line) {
  [[maybe_unused]] const auto ignored = recent_.try_push(std::move(line));
}

void LogWriter::run() {
  while (auto line = lines_.pop_until(Time::max())) {
    const Written line_written = write_line(std::move(*line));
    if (line_written == Written::stopped) return;
    count_dropped(line_written == Written::failed ? 1 : 0);
    if (unreported_ == 0 || line_written == Written::failed) continue;
    LogLine report(options().format, LogLevel::warning, "log lines dropped");
    const Written report_written =
        write_line(std::move(report.number("count", unreported_)).done());
    if (report_written == Written::stopped) return;
    if (report_written == Written::whole) unreported_ = 0;
  }
}

void LogWriter::count_dropped(std::uint64_t failed) {
  const auto dropped = failed + overflowed_.exchange(0, std::memory_order_relaxed);
  stats_.dropped.add(dropped);
  unreported_ += dropped;
}

LogWriter::Written LogWriter::write_line(std::string line) {
  if (torn_) line.insert(0, 1, '\n');
  line += '\n';
  pollfd ready{descriptor_, POLLOUT, 0};
  constexpr int timeout_ms = 100;
  while (poll(&ready, 1, timeout_ms) != 1) {
    count_dropped(0);
    if (ending_) return Written::stopped;
  }
  const ssize_t written = ::write(descriptor_, line.data(), line.size());
  const bool whole = written == std::ssize(line);
  torn_ = !whole && (torn_ || written > 0);
  return whole ? Written::whole : Written::failed;
}

}  // namespace millrace
