// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "recording/files/directory.h"
#include "recording/format/file_head.h"
#include "recording/format/stream_meta.h"
#include "schemas/recording/slice.h"

namespace millrace::recording {

// Writes one segment file (docs/recording_format.md): slices are collected in chunks of at most
// 64 KiB or one message, and commit() writes all of them. The writer keeps the uncommitted chunks
// in memory, and for the summary the channels and some bytes per chunk.
//
// After an error the file is in an unknown state: destroy the writer without seal(); the file stays
// unsealed for `repair`. A failed sync is not repeated. Confined to one thread. Does not allocate
// per slice in steady state.
class SegmentWriter {
 public:
  static constexpr std::size_t chunk_bytes = 64 << 10;
  static constexpr std::size_t most_channels = 32'000;

  // The file must be new and empty. Writes and syncs its head.
  static Result<SegmentWriter, std::error_code> begin(FileDescriptor file, const FileHead& head);
  SegmentWriter(SegmentWriter&&) noexcept;
  SegmentWriter& operator=(SegmentWriter&&) noexcept;
  ~SegmentWriter();

  // Room for another slice of a stream with this much in the file: a stream needs a channel.
  bool has_channel(std::uint64_t stream) const;
  std::size_t channels() const;

  // Adds a slice. `meta` is the stream's. `number` is the number of the slice in its stream.
  // `wall` is the time for MCAP's log_time, in nanoseconds since 1970. Requires: has_channel(), or
  // channels() < most_channels.
  void add(const StreamMeta& meta, std::uint32_t number, std::int64_t wall, const Slice& slice,
           std::span<const Bytes> frames);

  // Bytes that the next commit() writes.
  std::size_t uncommitted() const;
  // Bytes of the file after the next commit(), without its summary.
  std::uint64_t size() const;

  // Writes the chunks and their indexes in one call, reserves space ahead, and syncs.
  Result<void, std::error_code> write();
  Result<void, std::error_code> sync();

  // Writes what is uncommitted, the attachment `parts`, the summary and the footer, syncs, and
  // gives back reserved space. Nothing can be added afterwards.
  Result<void, std::error_code> seal();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace millrace::recording
