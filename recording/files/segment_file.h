// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/file_descriptor.h"
#include "base/result.h"
#include "recording/files/directory.h"
#include "recording/files/file.h"
#include "recording/files/segment_writer.h"
#include "recording/format/stream_meta.h"

namespace millrace::recording {

// A part of a segment file that cannot be read.
struct Damage {
  FileNumber file = 0;
  std::uint64_t offset = 0;  // of the first byte
  std::uint64_t bytes = 0;
  std::string why{};  // a sentence: "the checksum of chunk 12 is wrong"
};

// A message of the file: a slice, not verified by itself. The checksum of its chunk is good.
struct SliceMessage {
  std::uint16_t channel = 0;
  std::uint32_t number = 0;  // of the slice in its stream
  Bytes bytes{};             // in the mapped file
};

// A whole chunk of the file.
struct ChunkPlace {
  std::uint64_t offset = 0;               // of the Chunk record
  std::uint64_t bytes = 0;                // of the Chunk record
  std::uint64_t number = 0;               // from its marker
  std::vector<std::uint16_t> channels{};  // that have messages in it, ascending; empty: unknown
};

// One segment file, mapped for reading: sealed, or still being written, or left unsealed. A sealed
// file is read by its summary, any other by its markers. Never returns bytes whose checksum is not
// good. Confined to one thread; several objects may read one file.
class SegmentFile {
 public:
  // Opens the file. The error is one line: it is not MCAP, has another profile or a later version.
  static Result<SegmentFile, std::string> open(const Directory& directory, FileNumber number);

  const FileHead& head() const { return head_; }
  bool sealed() const { return sealed_; }
  std::uint64_t size() const { return map_.bytes().size(); }

  // An unsealed file: finds the chunks that were written since. True if there are any.
  bool refresh();

  const std::map<std::uint16_t, StreamMeta>& channels() const { return channels_; }
  // Sealed: the attachment. Otherwise computed from the chunks; then it costs a read of the file.
  std::vector<StreamPart> parts();
  const std::vector<ChunkPlace>& chunks() const { return chunks_; }
  // The messages of a chunk, in the order of the file. Checks the checksum at the first call for
  // this chunk. An error is damage: it is also added to damages().
  Result<std::vector<SliceMessage>, Damage> messages(std::size_t chunk);

  // The damage found so far, in the order of discovery. The unsealed tail that is being written is
  // no damage.
  const std::vector<Damage>& damages() const { return damages_; }
  // Unsealed: bytes after the last whole chunk.
  std::uint64_t torn_bytes() const { return torn_; }

 private:
  FileHead head_;
  MappedFile map_;
  FileDescriptor file_;
  bool sealed_ = false;
  std::map<std::uint16_t, StreamMeta> channels_;
  std::vector<ChunkPlace> chunks_;
  std::vector<bool> checked_;
  std::vector<Damage> damages_;
  std::uint64_t torn_ = 0;
};

}  // namespace millrace::recording
