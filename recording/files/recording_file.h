// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/file_descriptor.h"
#include "base/result.h"
#include "recording/files/chunk_scan.h"
#include "recording/files/directory.h"
#include "recording/files/file.h"
#include "recording/files/file_window.h"
#include "recording/files/summary_reader.h"
#include "recording/format/chunk_records.h"
#include "recording/format/file_head.h"
#include "recording/format/part_table.h"
#include "recording/format/stream_meta.h"

namespace millrace::recording {

// A part of a recording file that cannot be read.
struct Damage {
  FileNumber file = 0;
  std::uint64_t offset = 0;  // where the part begins
  std::uint64_t bytes = 0;
  std::string
      why{};  // a sentence: "chunk 12 has a wrong checksum: slices of streams 3, 17 are lost"
};

// How messages() reads a file.
enum class Reading : std::uint8_t {
  mapped,  // in place: the messages are valid as long as the RecordingFile
  copied   // into a buffer: they are valid until its next call. For all that must survive a disk
           // that fails at any moment: a read error of a mapping kills the process.
};

// One recording file: sealed, or still being written, or left unsealed. A sealed file is read by
// its summary, any other by its markers, and so is a sealed file whose summary is damaged. Never
// returns bytes whose checksum is not good. While another process writes, cuts or replaces the
// file, all that was returned stays valid. A part that the disk cannot read is damage.
//
// Confined to one thread; several objects may read one file. Functions that read throw
// std::system_error if the file cannot be examined or mapped.
class RecordingFile {
 public:
  // Opens the file. The error is one line: it cannot be opened, is not MCAP, has another profile or
  // a later version, or its beginning cannot be read.
  static Result<RecordingFile, std::string> open(const Directory& directory, FileNumber number,
                                                 Reading reading = Reading::mapped);
  // The same for a file that is open.
  static Result<RecordingFile, std::string> open(FileDescriptor descriptor, FileNumber number,
                                                 Reading reading = Reading::mapped);

  // If the metadata is damaged or not yet written, only `file` is known, and perhaps `id`.
  const FileHead& head() const { return head_; }
  // False also if the summary is damaged.
  bool sealed() const { return summary_.has_value(); }
  std::uint64_t size() const { return size_; }

  // An unsealed file: finds the chunks that were written since. True if there are any. The file can
  // be sealed after the call.
  bool refresh();

  // Unsealed: those in whole chunks. A stream whose first chunk is damaged is missing.
  const std::map<std::uint16_t, StreamMeta>& channels() const& { return channels_; }
  std::map<std::uint16_t, StreamMeta> channels() && { return std::move(channels_); }
  // Sealed: the attachment. Otherwise computed from the chunks; the first call then costs a read of
  // the file, each later one a read of the chunks since.
  std::vector<StreamPart> parts();
  const std::vector<ChunkPlace>& chunks() const { return chunks_; }
  // The messages of a chunk, in the order of the file. Checks the checksum at the first call for
  // this chunk. An error is damage: it is also added to damages().
  Result<std::vector<SliceMessage>, Damage> messages(std::size_t chunk);

  // For readers of streams. The channel of a stream; nullopt if the file has none.
  std::optional<std::uint16_t> channel_of(std::uint64_t stream);
  // The chunks with messages of this channel, ascending: indexes of chunks(). An unsealed file may
  // get more.
  const std::vector<std::uint32_t>& chunks_of(std::uint16_t channel);
  // messages(), kept for some chunks: the streams of a chunk are often read together. Null: the
  // chunk is damaged. Valid until the next call.
  const std::vector<SliceMessage>* kept_messages(std::size_t chunk);

  // Reads every byte once, from front to back, and checks all checksums. Calls `visit` with the
  // messages of each chunk that is good. True if there is no damage at all.
  using Visit = std::function<void(std::size_t chunk, const std::vector<SliceMessage>&)>;
  bool verify(const Visit& visit = {});

  // A chunk as it is on the disk, damaged or not, for a copy. Valid until the next call. nullopt:
  // no summary describes it.
  std::optional<RawChunk> raw_chunk(std::size_t chunk);

  // Closes the descriptor if the file is sealed, so that the number of files that a process reads
  // is not limited by it: chunks are read through the mapping. From then on, do not call parts()
  // and verify().
  void close_if_sealed();

  // The damage found so far, in the order of discovery. The unsealed tail is no damage: it may be
  // a commit that is being written.
  const std::vector<Damage>& damages() const { return damages_; }
  // Unsealed: bytes after the last whole chunk and its indexes.
  std::uint64_t torn_bytes() const;
  // Unsealed: see ChunkScan::has_damaged_tail.
  bool has_damaged_tail() { return !sealed() && begun_ && scan_->has_damaged_tail(); }
  // Why a part of the file could not be read into memory. It may be readable later. No error: all
  // could.
  std::error_code unreadable() const;

 private:
  enum class Checked : std::uint8_t { no, good, bad };

  RecordingFile(FileDescriptor file, FileNumber number, Reading reading);
  std::optional<std::string> begin();
  bool scan();
  void add(const FoundChunk& chunk);
  void take(FileSummary summary);
  void become_sealed();
  void cover(std::uint64_t bytes);
  Bytes read(std::uint64_t offset, std::uint64_t bytes, Reading reading);
  Result<std::vector<SliceMessage>, Damage> messages(std::size_t chunk, Reading reading);
  bool lists_parts() const { return summary_ && summary_->parts_offset > 0; }
  void add_parts(std::size_t chunk, const std::vector<SliceMessage>& messages);
  Damage damage(std::uint64_t offset, std::uint64_t bytes, std::string why);
  std::string lost_streams(const ChunkPlace& place) const;

  FileDescriptor file_;
  Reading reading_;
  FileWindow window_;
  FileHead head_;
  std::uint64_t size_ = 0;
  bool begun_ = false;  // the first records are there
  std::string start_damage_;
  // Mapped: the last one covers all chunks. The earlier ones stay for messages that were returned.
  std::vector<MappedFile> maps_;
  std::optional<FileSummary> summary_;
  std::optional<ChunkScan> scan_;
  std::map<std::uint16_t, StreamMeta> channels_;
  std::vector<ChunkPlace> chunks_;
  std::vector<Checked> checked_;
  std::vector<Damage> damages_;
  PartTable parts_;  // those of the first added_ chunks
  std::size_t added_ = 0;

  std::unordered_map<std::uint64_t, std::uint16_t> channels_by_stream_;
  std::unordered_map<std::uint16_t, std::vector<std::uint32_t>> chunks_by_channel_;
  std::size_t indexed_channels_ = 0;
  std::size_t indexed_chunks_ = 0;
  struct Kept {
    std::size_t chunk = 0;
    std::vector<SliceMessage> messages{};
    bool used = false;
  };
  // By the number of the chunk. Streams of one file that are read in turns are up to a few MiB
  // apart. Empty until the first call.
  static constexpr std::size_t most_kept = 256;
  std::vector<Kept> kept_;
};

}  // namespace millrace::recording
