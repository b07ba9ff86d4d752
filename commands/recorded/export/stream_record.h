// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "commands/recorded/export/part_files.h"
#include "recording/reader/stream_parts.h"
#include "recording/reader/stream_reader.h"

namespace millrace::recordings {

// The line of a stream in `streams.jsonl`: all that is known of the stream except its frames. It
// has the members of `ls --json`, then the frame type, the rule, the client's format and options,
// the exported files, the events other than `frames`, the answers, the missing parts, and the
// totals. Confined to one thread.
class StreamRecord {
 public:
  explicit StreamRecord(recording::StreamParts parts) : parts_(std::move(parts)) {}

  // The next item of the stream. `opened`: when the stream opened, by the clock of the item.
  void add(const recording::RecordedItem& item, std::int64_t opened);
  // The line, with a newline. A stream with a missing part is not whole.
  std::string line(const std::vector<PartFiles::File>& files,
                   const std::vector<recording::MissingPart>& missing) const;

 private:
  const recording::StreamParts parts_;
  std::array<std::string, std::variant_size_v<recording::RecordedItem>> items_;  // JSON, by kind
};

}  // namespace millrace::recordings
