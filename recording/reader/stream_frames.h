// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "recording/reader/stream_reader.h"

namespace millrace::recording {

// The events of a stream, and its frames at any place: for training. Keeps some bytes per slice in
// memory; the frames stay in the files. The same rules as for a StreamReader. Confined to the
// thread of its Recordings, which must outlive it.
class StreamFrames {
 public:
  // Reads the whole stream once, and verifies its checksums.
  StreamFrames(Recordings& recordings, const RecordedStream& stream);

  // A stream that is being recorded: reads what was written before the last Recordings::refresh().
  // True if there was anything.
  bool read_on();

  const RecordedStream& stream() const { return reader_.stream(); }
  // All events. `frames` events that follow each other are one. Their RecordedEvent::frames are
  // empty.
  const std::vector<RecordedEvent>& events() const { return events_; }
  std::uint64_t frames() const { return frames_; }  // without gaps
  bool over() const { return reader_.over(); }
  const std::vector<MissingPart>& missing() const { return reader_.missing(); }
  // nullopt: the stream was not recorded to its end.
  const std::optional<StreamTotals>& totals() const { return totals_; }

  // The frames [begin, end), counted without gaps. In place if they lie in one slice: valid as long
  // as this object. Otherwise copied to `into`. Requires: begin <= end <= frames().
  Bytes read(std::uint64_t begin, std::uint64_t end, std::vector<std::byte>& into) const;

 private:
  // Frames that lie one after the other in a file.
  struct Piece {
    std::uint64_t begin = 0;  // its first frame
    Bytes bytes{};
  };

  void add(const RecordedEvent& read);

  StreamReader reader_;
  std::size_t frame_bytes_;
  std::uint64_t frames_ = 0;
  std::vector<RecordedEvent> events_;
  std::vector<Piece> pieces_;
  std::optional<StreamTotals> totals_;
};

}  // namespace millrace::recording
