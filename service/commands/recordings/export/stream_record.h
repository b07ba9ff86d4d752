// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "recording/reader/stream_reader.h"
#include "service/commands/recordings/export/part_files.h"

namespace millrace::recordings {

// The line of a stream in `streams.jsonl`: all that is known of the stream except its frames. It
// has the members of `ls --json`, then the frame type, the rule, the client's format and options,
// the exported files, the events other than `frames`, the answers, the missing parts, and the
// totals. Confined to one thread.
class StreamRecord {
 public:
  explicit StreamRecord(const recording::RecordedStream& stream);

  // The next item of the stream.
  void add(const recording::ReadItem& item);
  // The line, with a newline. Call it once.
  std::string line(const std::vector<PartFiles::File>& files,
                   const std::vector<recording::MissingPart>& missing);

 private:
  void append(const recording::ReadEvent& read);
  void append(const recording::RecordedAnswer& answer);
  void append(const recording::StreamTotals& totals);

  const std::int64_t opened_steady_;
  std::string line_, events_, answers_;
  std::string totals_ = "null";
  std::uint64_t position_ = 0;
};

}  // namespace millrace::recordings
