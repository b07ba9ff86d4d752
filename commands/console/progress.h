// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "commands/console/console.h"

namespace millrace {

// The lines of a command on standard error: notes, and on a terminal a line of progress, rewritten
// in place at most ten times per second. The destructor removes that line. Confined to one thread.
class Progress {
 public:
  // `err` must outlive it.
  Progress(std::ostream& err, bool terminal) : err_(err), terminal_(terminal) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // True if a line shown now would be written: lets a caller leave out the work to make one.
  bool due(Time now) const { return terminal_ && (!shown_ || now - *shown_ >= interval); }
  void show(std::string_view line, Time now);
  // Removes the line, before something else is printed on the terminal.
  void clear();
  // Prints a line of its own, unless it was printed before.
  void note(std::string_view line);

 private:
  static constexpr Duration interval = std::chrono::milliseconds(100);

  std::ostream& err_;
  const bool terminal_;
  std::optional<Time> shown_;
  std::set<std::string, std::less<>> noted_;
  bool visible_ = false;
};

// Runs a command that shows progress, then flushes what it printed. The exit code is 1 if it
// returns false, returns an error, or throws. The error is printed after the words of the command,
// as "millrace index"; that of an exception also after the path that the command was given.
void run_with_progress(Console& console, const std::string& name, const std::string& path,
                       const std::function<Result<bool, std::string>(Progress&)>& command);

// Bytes for people: "3.1 GB".
std::string decimal_bytes(std::uint64_t bytes);
// A count and its noun: "1 file", "2 files".
std::string counted(std::uint64_t count, std::string_view noun);

}  // namespace millrace
