// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/event.h"
#include "base/time.h"
#include "recording/reader/recordings.h"
#include "schemas/recording/slice.h"

namespace millrace::recording {

// An event, as the chunker received it. `frames`: the values of a `frames` event, in the mapped
// file, valid as long as the reader.
struct ReadEvent {
  Event event{};
  Time at{};
  Bytes frames{};
};

// A part of a stream that is missing: [begin, end) in positions, and `events` events.
struct MissingPart {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t events = 0;
  std::string why{};  // "not recorded: queue_full", "damaged: file 3", "deleted"
};

using ReadItem = std::variant<ReadEvent, RecordedAnswer, StreamTotals>;

// Reads one stream from its begin to its end: its events in order, the answers to its rows, and its
// totals. The events are those of a stream that a Chunker accepts: the first is `open`, and the
// last is `end` or `abort`, unless the stream is still being recorded.
//
// A missing part is returned as events with the cause `recorder`: a `gap` of the missing frames, or
// a `reset` if no frame is missing, and a `size` if the size in force is another one. A stream that
// has no end ends with `abort`. Missing parts are also listed in missing().
//
// Confined to the thread of its Recordings, which must outlive it.
class StreamReader {
 public:
  StreamReader(Recordings& recordings, const RecordedStream& stream);
  StreamReader(StreamReader&&) noexcept;
  ~StreamReader();

  const RecordedStream& stream() const;

  // The next item. nullopt: the stream is over, or, if it is still being recorded, the reader is at
  // the last whole chunk; call it again after Recordings::refresh(). The views of an item are valid
  // until the next call, frames as long as the reader.
  std::optional<ReadItem> next();
  // True once the last event was returned.
  bool over() const;

  const std::vector<MissingPart>& missing() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The frames of a stream at any position: for training. Confined to one thread.
class StreamFrames {
 public:
  // Reads the whole stream once, without its frames.
  StreamFrames(Recordings& recordings, const RecordedStream& stream);
  ~StreamFrames();

  // All events. `frames` events that follow each other are one; their frames are not here.
  const std::vector<ReadEvent>& events() const;
  std::uint64_t frames() const;  // frames, without gaps

  // The frames [begin, end), counted without gaps. In place if they lie in one slice, otherwise
  // copied to `into`. Requires: begin <= end <= frames().
  Bytes read(std::uint64_t begin, std::uint64_t end, std::vector<std::byte>& into) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace millrace::recording
