// SPDX-License-Identifier: Apache-2.0
#include "commands/console/progress.h"

#include <array>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <ostream>

namespace millrace {

void Progress::show(std::string_view line, Time now) {
  if (!due(now)) return;
  // CSI K removes the rest of the line before.
  err_ << '\r' << line << "\x1b[K" << std::flush;
  shown_ = now;
  visible_ = true;
}

void Progress::clear() {
  if (visible_) err_ << "\r\x1b[K" << std::flush;
  visible_ = false;
}

void Progress::note(std::string_view line) {
  if (!noted_.emplace(line).second) return;
  clear();
  err_ << line << '\n';
}

void run_with_progress(Console& console, const std::string& name, const std::string& path,
                       const std::function<Result<bool, std::string>(Progress&)>& command) {
  Result<bool, std::string> outcome = true;
  {
    Progress progress(console.err, console.terminal);
    try {
      outcome = command(progress);
    } catch (const std::exception& error) {
      outcome = Result<bool, std::string>(path + ": " + error.what());
    }
  }
  console.out.flush();
  if (outcome && *outcome) return;
  if (!outcome) console.err << name << ": " << outcome.error() << '\n';
  console.exit_code = 1;
}

std::string decimal_bytes(std::uint64_t bytes) {
  constexpr std::array units{"B", "kB", "MB", "GB", "TB", "PB"};
  if (bytes < 1000) return std::to_string(bytes) + " B";
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < units.size()) {
    value /= 1000;
    ++unit;
  }
  char text[32];
  const int size = std::snprintf(text, sizeof text, "%.3g %s", value, units[unit]);
  return std::string(text, static_cast<std::size_t>(size));
}

std::string counted(std::uint64_t count, std::string_view noun) {
  std::string text = std::to_string(count) + ' ';
  text += noun;
  if (count != 1) text += 's';
  return text;
}

}  // namespace millrace
