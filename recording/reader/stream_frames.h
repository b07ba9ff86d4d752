// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "recording/reader/joined_reader.h"

namespace millrace::recording {

// Events and frames that a part of a stream has, and the next part again.
enum class Repeated : std::uint8_t { kept, left_out };

// The events of a stream, and its frames at any place. Keeps some bytes per slice in memory; the
// frames stay in the files. The same rules as for a JoinedReader, of which it counts all frames in
// order. Confined to the thread of its Recordings, which must outlive it.
class StreamFrames {
 public:
  // Reads the whole stream once, and verifies its checksums.
  StreamFrames(Recordings& recordings, const StreamParts& parts, Repeated repeated);
  // A stream of one part.
  StreamFrames(Recordings& recordings, const RecordedStream& stream)
      : StreamFrames(recordings, StreamParts{stream}, Repeated::kept) {}

  // A stream that is being recorded: reads what was written before the last Recordings::refresh().
  // True if there was anything.
  bool read_on();

  // All events, with their frame in this order. `frames` events that follow each other are one.
  // Their RecordedEvent::frames are empty.
  const std::vector<RecordedEvent>& events() const { return events_; }
  std::uint64_t frames() const { return frames_; }  // without gaps
  bool over() const { return reader_.over(); }
  std::vector<MissingPart> missing() const { return reader_.missing(); }
  // nullopt: the stream was not recorded to its end.
  const std::optional<StreamTotals>& totals() const { return totals_; }

  // The frames of a part that are among the above, which are its first ones.
  struct PartFrames {
    std::uint64_t number = 0;  // StreamMeta::number
    std::uint64_t all = 0;
    std::uint64_t once = 0;  // those that the next part does not have
  };
  // In order, without parts that have no row that counts.
  const std::vector<PartFrames>& parts() const { return parts_; }

  // The frames [begin, end), counted without gaps. In place if they lie in one slice: valid as long
  // as this object. Otherwise copied to `into`. Requires: begin <= end <= frames().
  Bytes read(std::uint64_t begin, std::uint64_t end, std::vector<std::byte>& into) const;

 private:
  // Frames that lie one after the other in a file.
  struct Piece {
    std::uint64_t begin = 0;  // its first frame
    Bytes bytes{};
  };

  void add(RecordedEvent read);
  void count(const RecordedEvent& read);

  JoinedReader reader_;
  const Repeated repeated_;
  std::size_t frame_bytes_;
  std::uint64_t frames_ = 0;
  std::vector<RecordedEvent> events_;
  std::vector<PartFrames> parts_;
  std::vector<Piece> pieces_;
  std::optional<StreamTotals> totals_;
};

}  // namespace millrace::recording
