// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/event.h"
#include "base/result.h"
#include "chunker/chunker.h"
#include "recording/reader/recordings.h"

namespace millrace::recordings {

// Cuts a recorded stream by its recorded rule. Confined to one thread.
class RecordedRule {
 public:
  // The error is a sentence that names the stream.
  static Result<RecordedRule, std::string> of(const recording::RecordedStream& stream);

  // Adds the next event. False: the rule does not allow the size of a `size` event. That is
  // possible only in a file that no service wrote.
  bool add(const Event& event);
  std::optional<Row> next() { return chunker_.next(); }
  std::uint64_t position() const { return chunker_.position(); }

 private:
  explicit RecordedRule(const Spec& spec) : spec_(spec), chunker_(spec) {}

  Spec spec_;
  Chunker chunker_;
};

}  // namespace millrace::recordings
