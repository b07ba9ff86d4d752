// SPDX-License-Identifier: Apache-2.0
#include "commands/recorded/verify/problems.h"

#include <ostream>
#include <set>

namespace millrace::recordings {

void Problems::add(FileNumber file, const std::string& what) {
  add(Directory::file_name(file) + ": " + what);
}

void Problems::add(FileNumber file, std::uint64_t stream, std::uint64_t position,
                   const std::string& what) {
  waiting_.push_back({stream, Directory::file_name(file) + ": stream " + std::to_string(stream) +
                                  ", position " + std::to_string(position) + ": " + what});
}

void Problems::print() {
  if (waiting_.empty()) return;
  // `rm` adds a stream to these before it changes a file. So a stream that a problem is about is
  // among them if `rm` is the reason.
  const std::set<std::uint64_t> removed = directory_.removed();
  progress_.clear();
  for (const Problem& problem : waiting_) {
    if (problem.stream && removed.contains(*problem.stream)) continue;
    out_ << problem.line << '\n';
    ++printed_;
  }
  waiting_.clear();
}

}  // namespace millrace::recordings
