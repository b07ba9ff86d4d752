// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "recording/reader/event_join.h"
#include "recording/reader/recordings.h"
#include "schemas/slices/slice.h"

namespace millrace::recording {

// Reads one stream from its begin to its end: its events in order, the answers to its rows, and its
// totals. The events are those that a Chunker accepts: the first is `open`, and the last is `end`
// or `abort`, unless the stream is still being recorded. In a forged file a `size` event may have a
// count that the rule does not allow: check it with ChunkRule::allows_body before it is given to a
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
  // Not copied: the items refer to the decoder's memory.
  StreamReader(StreamReader&&) = default;
  StreamReader& operator=(StreamReader&&) = default;

  const RecordedStream& stream() const { return stream_; }

  // The next item. nullopt: the stream is over, or, if it is still being recorded, the reader is at
  // the last whole chunk; call it again after Recordings::refresh(). The views of an item are valid
  // until the next call, frames and texts of events as long as the reader.
  std::optional<RecordedItem> next();
  // True once next() has returned the last item.
  bool over() const { return join_.over(); }

  const std::vector<MissingPart>& missing() const { return join_.missing(); }

 private:
  const SliceMessage* next_message();
  void add_slice(const SliceMessage& message);
  void finish();
  bool reopen();
  bool open_next_file();
  void read_chunk();
  void notice_damage(std::uint64_t to);
  void reject();
  std::string why_missing(const std::string& otherwise) const;

  Recordings* recordings_;
  RecordedStream stream_;
  std::string run_;  // the run that wrote its last file

  std::vector<FileNumber> numbers_;  // files with parts of the stream
  std::size_t next_number_ = 0;      // the next one to open
  std::uint64_t changes_;            // Recordings::changes() when numbers_ was read

  std::shared_ptr<RecordingFile> file_;  // being read
  FileNumber number_ = 0;
  std::uint16_t channel_ = 0;
  std::size_t next_chunk_ = 0;      // in RecordingFile::chunks_of
  std::uint64_t looked_until_ = 0;  // offset in the file
  std::vector<SliceMessage> messages_;
  std::size_t next_message_ = 0;

  SliceDecoder decoder_;
  // All files read, and the messages that could not be read in place.
  std::vector<std::shared_ptr<RecordingFile>> files_;
  std::vector<std::vector<std::byte>> copies_;

  std::string damage_;  // since the last slice that was used
  EventJoin join_;
};

}  // namespace millrace::recording
