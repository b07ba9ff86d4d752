// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "schemas/transcripts/transcript.h"

namespace millrace {

// The text of one segment for a client that adds up what it receives: the text that it receives
// only grows. Several final texts of a segment become one. Confined to one thread.
class SegmentText {
 public:
  // Adds the transcript of the next row.
  void add(Transcript transcript) {
    if (latest_.final) keep();
    latest_ = std::move(transcript);
  }
  // Later transcripts do not contain the text so far.
  void begin_anew() { keep(); }
  bool empty() const { return kept_.empty() && latest_.text.empty(); }
  std::string text() const { return joined(latest_.text); }
  // The text that became stable since the last call; with `all` the rest of the text. Empty if the
  // text before was changed.
  std::string take_stable(bool all = false) {
    const std::string_view latest = latest_.text;
    const std::string stable = joined(latest.substr(0, all ? latest.size() : latest_.stable));
    if (stable.size() <= taken_.size() || !stable.starts_with(taken_)) return {};
    std::string delta = stable.substr(taken_.size());
    taken_ = stable;
    return delta;
  }

 private:
  static constexpr std::size_t longest_ = std::size_t{1} << 20;  // bytes; text beyond it is dropped

  std::string joined(std::string_view latest) const {
    return kept_ + (kept_.empty() || latest.empty() ? "" : " ") + std::string(latest);
  }
  void keep() {
    if (kept_.size() + latest_.text.size() < longest_) kept_ = text();
    latest_ = {};
  }

  std::string kept_;   // texts that the worker has finished or lost
  std::string taken_;  // returned by take_stable() so far
  Transcript latest_{};
};

}  // namespace millrace
