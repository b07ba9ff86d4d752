// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "recording/reader/recordings.h"
#include "schemas/slices/slice.h"

namespace millrace::recording {

// The slices of one stream, in the order of the files. The frames of a slice are valid as long as
// this object, all else until the next call. Confined to the thread of its Recordings, which must
// outlive it.
class SliceSource {
 public:
  SliceSource(Recordings& recordings, const RecordedStream& stream);

  struct Found {
    std::uint32_t number = 0;  // counted in its stream
    Slice slice{};
  };
  // The next slice. nullopt: this was the last one, or, if live(), the last one that is written.
  // After Recordings::refresh() there may be more. A slice comes again if its file was replaced.
  std::optional<Found> next();
  // A service is recording the stream now.
  bool live() const;

  // Why slices are missing since the last accept(), if they are.
  std::string why_missing(const std::string& otherwise) const;
  // The slice that next() returned last is used, or it is not: then its events are missing.
  void accept() { damage_.clear(); }
  void reject();

 private:
  bool reopen();
  bool open_next_file();
  void read_chunk();
  std::optional<Found> decode(const SliceMessage& message);
  void notice_damage(std::uint64_t to);

  Recordings* recordings_;
  RecordedStream stream_;
  std::string run_;

  std::vector<FileNumber> numbers_;  // files with parts of the stream
  std::size_t next_number_ = 0;      // the next one to open
  std::uint64_t changes_;            // Recordings::changes() when numbers_ was read

  std::shared_ptr<IndexedFile> file_;  // being read
  FileNumber number_ = 0;
  std::uint16_t channel_ = 0;
  std::size_t next_chunk_ = 0;      // in IndexedFile::chunks_of
  std::uint64_t looked_until_ = 0;  // offset in the file
  std::vector<SliceMessage> messages_;
  std::size_t next_message_ = 0;

  SliceDecoder decoder_;
  // All files read, and the frames of messages that could not be read in place.
  std::vector<std::shared_ptr<IndexedFile>> files_;
  std::vector<std::vector<std::byte>> copies_;

  std::string damage_;  // since the last accept()
};

}  // namespace millrace::recording
