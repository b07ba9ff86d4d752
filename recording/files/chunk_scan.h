// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "recording/files/file_window.h"
#include "recording/format/chunk_records.h"
#include "recording/format/file_start.h"
#include "recording/format/mcap.h"

namespace millrace::recording {

// A whole chunk, found by its marker. The views in `records` are valid until the next call.
struct FoundChunk {
  std::uint64_t marker = 0;  // begin of its marker
  std::uint64_t offset = 0;  // begin of the Chunk record
  std::uint64_t bytes = 0;   // length of the Chunk record
  std::uint64_t number = 0;
  ChunkRecords records{};
};

// Finds the whole chunks of a recording file by their markers, from front to back. After damage it
// continues at the next marker. At the last whole chunk it stops; after reset(), it continues there
// with the bytes that were written since. Confined to one thread.
class ChunkScan {
 public:
  // The chunks begin at `begin` or later. `id`: that of the file; nullopt: that of its first
  // marker.
  ChunkScan(std::uint64_t begin, std::optional<FileId> id) : id_(id), end_(begin) {}

  // Sets the size of the file, before the first call of next() and after it has grown.
  void reset(int descriptor, std::uint64_t size) { window_.reset(descriptor, size); }

  // nullopt: no whole chunk follows.
  std::optional<FoundChunk> next();

  // A damaged part of the file between two whole chunks.
  struct Gap {
    std::uint64_t begin = 0, end = 0;
    std::string why{};  // a sentence
  };
  // The damage before the chunk that next() returned last.
  const std::optional<Gap>& damage() const { return damage_; }
  // After the last whole chunk, and after its message indexes if the file is long enough.
  std::uint64_t end() const { return window_.size() < indexed_end_ ? end_ : indexed_end_; }
  const std::optional<FileId>& id() const { return id_; }

  // Once next() has returned nullopt. False: a write that was interrupted can have left the bytes
  // after end(): the begin of a chunk, of indexes, or of the end of the file. True: they were whole
  // before, and a committed chunk may be among them.
  bool has_damaged_tail();
  // Why a part of the file could not be read since reset(). No error: all could.
  std::error_code unreadable() const { return window_.failed(); }

 private:
  struct PlacedMarker {
    mcap::Marker marker{};
    std::uint64_t begin = 0, end = 0;
  };
  std::optional<PlacedMarker> marker_at(std::uint64_t offset);
  std::optional<PlacedMarker> search_marker(std::uint64_t from);
  void take(const PlacedMarker& marker, std::uint64_t indexes, const std::string& last_error);
  bool only_zeros_from(std::uint64_t offset);

  FileWindow window_;
  std::optional<FileId> id_;
  std::uint64_t end_;                 // end of the last whole chunk
  std::uint64_t indexed_end_ = end_;  // where its indexes end
  std::uint64_t next_number_ = 0;
  std::optional<Gap> damage_;
  bool damaged_chunk_ = false;  // after the last whole chunk there is one that is not cut off
};

}  // namespace millrace::recording
