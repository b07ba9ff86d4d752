// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "recording/reader/recordings.h"
#include "recording/reader/stream_reader.h"

namespace millrace {

// One recorded stream, item by item: its events, the answers to its rows, its totals. Confined to
// one thread.
class RecordedItems {
 public:
  virtual ~RecordedItems() = default;

  // The next item. nullopt: there are no more. Frames are valid as long as this object, other views
  // until the next call.
  virtual std::optional<recording::ReadItem> next() = 0;
  // The parts of the stream that are missing so far.
  virtual const std::vector<recording::MissingPart>& missing() const = 0;
};

// A stream of a directory. A stream that is still being recorded ends at the last whole chunk.
class StreamItems final : public RecordedItems {
 public:
  // `recordings` must outlive it.
  StreamItems(recording::Recordings& recordings, const recording::RecordedStream& stream)
      : reader_(recordings, stream) {}

  std::optional<recording::ReadItem> next() override { return reader_.next(); }
  const std::vector<recording::MissingPart>& missing() const override { return reader_.missing(); }

 private:
  recording::StreamReader reader_;
};

}  // namespace millrace
