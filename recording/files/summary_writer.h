// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "recording/format/chunk_builder.h"
#include "recording/format/file_head.h"
#include "recording/format/part_table.h"
#include "recording/format/stream_meta.h"
#include "schemas/slices/slice.h"

namespace millrace::recording {

// Where a record lies in the file.
struct RecordPlace {
  std::uint64_t offset = 0, bytes = 0;
};

// Appends the beginning of a recording file: magic, Header, Metadata and Schema. Returns the place
// of the Metadata record. Requires: `into` is empty.
RecordPlace append_head(std::vector<std::byte>& into, const FileHead& head);

// Collects the end of a recording file: the channels, the parts of the streams, statistics, and the
// index of the chunks. Used by the writer, and by recovery for a file that was left unsealed.
// Confined to one thread. Does not allocate per slice in steady state.
class SummaryWriter {
 public:
  // `metadata` is the place of the Metadata record of the head.
  explicit SummaryWriter(RecordPlace metadata) : metadata_(metadata) {}

  // Adds a channel, if it is a new one, and returns its record, valid until the next call.
  Bytes add_channel(std::uint16_t channel, const StreamMeta& meta);
  // The parts of the streams: add each slice, after its channel.
  PartTable& parts() { return parts_; }
  const PartTable& parts() const { return parts_; }
  void add_chunk(const mcap::ChunkFacts& chunk, std::span<const mcap::IndexPlace> indexes);
  std::uint64_t chunks() const { return chunks_; }

  // Writes the attachment, DataEnd, the summary, the footer and the magic to the end of the file,
  // which is at `offset`, and syncs. `crc` is the CRC-32 of all bytes before. Syncs also before the
  // summary: a summary on the disk shows that all bytes before it are there. Returns the size of
  // the file.
  Result<std::uint64_t, std::error_code> write_end(int file, std::uint64_t offset,
                                                   std::uint32_t crc) const;

 private:
  // Returns where the summary begins in `into`.
  std::size_t append_end(std::vector<std::byte>& into, std::uint64_t offset,
                         std::uint32_t crc) const;
  void append_statistics(std::vector<std::byte>& into, std::span<const StreamPart> parts) const;

  RecordPlace metadata_;
  PartTable parts_;
  std::vector<std::byte> channel_records_, chunk_indexes_;   // whole records
  std::unordered_map<std::uint16_t, RecordPlace> channels_;  // in channel_records_
  std::uint64_t chunks_ = 0, first_time_ = 0, last_time_ = 0;
};

}  // namespace millrace::recording
