// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "recording/reader/read_item.h"
#include "recording/reader/recordings.h"

namespace millrace::recording {

// Reads one stream from its begin to its end: its events in order, the answers to its rows, and its
// totals. The events are those that a Chunker accepts: the first is `open`, and the last is `end`
// or `abort`, unless the stream is still being recorded. In a forged file a `size` event may have a
// count that the rule does not allow: check it with Spec::check_size before it is given to a
// Chunker.
//
// A missing part is returned as events with the cause `recorder`: a `gap` of the missing frames, or
// a `reset` if no frame is missing, and a `size` if the size in force is another one. A stream that
// has no end ends with `abort`. Missing parts are also listed in missing().
//
// A reader keeps the files that it has read: they may be deleted or replaced meanwhile.
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
  // True once next() has returned the last item.
  bool over() const;

  const std::vector<MissingPart>& missing() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace millrace::recording
