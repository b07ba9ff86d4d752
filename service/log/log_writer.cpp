// SPDX-License-Identifier: Apache-2.0
#include "service/log/log_writer.h"

#include <poll.h>

#include <utility>

#include "base/quiet_thread.h"

namespace millrace {

// A quiet thread blocks SIGPIPE: a write to a pipe without a reader is then an error of that write,
// not the end of the program.
LogWriter::LogWriter(const LogOptions& options, int descriptor)
    : descriptor_(descriptor), options_(options), thread_(quiet_thread("log", [this] { run(); })) {}

LogWriter::~LogWriter() {
  ending_ = true;
  lines_.close();
}

void LogWriter::write(std::string line) {
  // Relaxed: a count orders nothing.
  if (lines_.try_push(std::move(line)) == Queue<std::string>::Pushed::full)
    overflowed_.fetch_add(1, std::memory_order_relaxed);
}

void LogWriter::remember(std::string line) {
  [[maybe_unused]] const auto ignored = remembered_.try_push(std::move(line));
}

void LogWriter::run() {
  while (auto line = lines_.pop_until(Time::max())) {
    const Put put_line = put(std::move(*line));
    if (put_line == Put::given_up) return;
    count_dropped(put_line == Put::failed ? 1 : 0);
    if (unreported_ == 0 || put_line == Put::failed) continue;
    LogLine report(options().format, LogLevel::warning, "log lines dropped");
    const Put put_report = put(std::move(report.number("count", unreported_)).done());
    if (put_report == Put::given_up) return;
    if (put_report == Put::written) unreported_ = 0;
  }
}

void LogWriter::count_dropped(std::uint64_t failed) {
  const auto dropped = failed + overflowed_.exchange(0, std::memory_order_relaxed);
  stats_.dropped.add(dropped);
  unreported_ += dropped;
}

LogWriter::Put LogWriter::put(std::string line) {
  if (torn_) line.insert(0, 1, '\n');
  line += '\n';
  pollfd ready{descriptor_, POLLOUT, 0};
  constexpr int patience = 100;  // milliseconds
  while (poll(&ready, 1, patience) != 1) {
    count_dropped(0);
    if (ending_) return Put::given_up;
  }
  const ssize_t written = ::write(descriptor_, line.data(), line.size());
  const bool whole = written == std::ssize(line);
  torn_ = !whole && (torn_ || written > 0);
  return whole ? Put::written : Put::failed;
}

}  // namespace millrace
