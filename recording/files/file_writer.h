// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "recording/files/directory.h"
#include "recording/files/summary_reader.h"
#include "recording/format/chunk_records.h"
#include "recording/format/file_head.h"
#include "recording/format/stream_meta.h"
#include "schemas/slices/slice.h"

namespace millrace::recording {

// Writes one recording file (docs/recording_format.md): slices are collected in chunks of at most
// 64 KiB or one message, and write() writes all of them. The writer keeps the chunks that are not
// written in memory, and for the summary the channels and some bytes per slice.
//
// After an error the file is in an unknown state: destroy the writer without seal(); the file stays
// unsealed for `repair`. A failed sync is not repeated. Confined to one thread. Does not allocate
// per slice in steady state.
class FileWriter {
 public:
  static constexpr std::size_t chunk_bytes = 64 << 10;
  static constexpr std::size_t most_channels = 32'000;

  static constexpr std::uint64_t reserved_bytes = 16 << 20;

  // The file must be new and empty. Writes and syncs its head. `reserved`: the file system reserves
  // space in steps of this size, so that a commit needs no new blocks; 0: none, for a copy.
  // Requires: head.id is 32 hex digits.
  static Result<FileWriter, std::error_code> begin(FileDescriptor file, const FileHead& head,
                                                   std::uint64_t reserved = reserved_bytes);
  FileWriter(FileWriter&&) noexcept;
  FileWriter& operator=(FileWriter&&) noexcept;
  ~FileWriter();

  // Room for another slice of a stream with this much in the file: a stream needs a channel.
  bool has_channel(std::uint64_t stream) const;
  std::size_t channels() const;

  // Adds a slice. `meta` is the stream's. `number` is the number of the slice in its stream.
  // `wall` is the time for MCAP's log_time, in nanoseconds since 1970. Requires: has_channel(), or
  // channels() < most_channels.
  void add(const StreamMeta& meta, std::uint32_t number, std::int64_t wall, const Slice& slice,
           std::span<const Bytes> frames);

  // Adds a slice of another file, with its channel there. All slices of the file must be added by
  // this function then. `slice` is the decoded one.
  void copy(const StreamMeta& meta, const SliceMessage& message, const Slice& slice);
  // Adds a chunk of another file as it is, although it is damaged, with the channels in which it
  // has messages.
  void copy(const RawChunk& chunk, const std::map<std::uint16_t, StreamMeta>& channels);
  // Sets what `parts` says about a stream. Its channel is in the summary also if no slice is there.
  void set_part(const StreamPart& part, const StreamMeta& meta);
  // Notes in `parts` that a stream with a channel lost slices that no slice of the file names.
  void add_loss(std::uint64_t stream);

  // Bytes that the next write() writes, at most.
  std::size_t uncommitted() const;
  // Bytes of the file after the next write(), at most, without the summary.
  std::uint64_t size() const;

  // Writes the chunks and their indexes in one call, reserves space ahead, and syncs.
  Result<void, std::error_code> write();
  Result<void, std::error_code> sync();

  // Writes what is uncommitted, the attachment `parts`, the summary and the footer, syncs, and
  // gives back reserved space. Nothing can be added afterwards.
  Result<void, std::error_code> seal();

 private:
  struct Impl;
  explicit FileWriter(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace millrace::recording
