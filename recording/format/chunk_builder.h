// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"

namespace millrace::recording::mcap {

// A message of a chunk, for the index of its channel.
struct IndexEntry {
  std::uint16_t channel = 0;
  std::uint64_t time = 0;    // log_time
  std::uint64_t offset = 0;  // from the first record of the chunk to the Message record
};

// The MessageIndex record of a channel.
struct IndexPlace {
  std::uint16_t channel = 0;
  std::uint64_t offset = 0;  // in the file
};

// A complete chunk, for the summary.
struct ChunkFacts {
  std::uint64_t first_time = 0, last_time = 0;  // least and largest log_time of its messages
  std::uint64_t offset = 0;                     // the place of the Chunk record in the file
  std::uint64_t bytes = 0;                      // the whole Chunk record
  std::uint64_t records = 0;                    // bytes of the records in it
  std::uint64_t index_bytes = 0;                // all its MessageIndex records
};

// Appends a MessageIndex record for each channel, in the order of the channels, and their places.
// `base` is the place of the first byte of `into` in the file. The entries are put into the order
// of channels.
void append_indexes(std::vector<std::byte>& into, std::uint64_t base, std::span<IndexEntry> entries,
                    std::vector<IndexPlace>& places);

// Builds chunks at the end of a buffer, each behind its marker and followed by its indexes. The
// FlatBuffers of its messages are aligned to 8 bytes in the file. Does not allocate in steady
// state. Confined to one thread.
class ChunkBuilder {
 public:
  explicit ChunkBuilder(const std::array<std::byte, 16>& id) : id_(id) {}

  // Begins the chunk `number` of the file. `base` is the place of the first byte of `into` in the
  // file. The buffer must not be changed by others until end().
  void begin(std::vector<std::byte>& into, std::uint64_t base, std::uint64_t number);
  bool begun() const { return into_ != nullptr; }

  // Adds a whole Channel record, of a multiple of 8 bytes.
  void add_channel(Bytes record);
  // Adds a message. `payload` is a FlatBuffer of a multiple of 8 bytes, in parts.
  void add_message(std::uint16_t channel, std::uint32_t sequence, std::uint64_t time,
                   std::span<const Bytes> payload);

  std::size_t record_bytes() const;  // so far
  // At most the bytes of the indexes that end() appends.
  std::size_t index_bytes() const;

  // Completes marker and chunk, and appends the indexes. The places are valid until begin().
  ChunkFacts end();
  std::span<const IndexPlace> places() const { return places_; }

 private:
  std::array<std::byte, 16> id_;
  std::vector<std::byte>* into_ = nullptr;
  std::uint64_t base_ = 0, number_ = 0;
  std::size_t marker_ = 0, padding_ = 0, records_ = 0;  // in the buffer
  std::vector<IndexEntry> entries_;
  std::vector<IndexPlace> places_;
  std::vector<std::byte> marker_bytes_;
};

// The bytes that a message with this payload takes in a chunk.
std::size_t message_bytes(std::size_t payload);

}  // namespace millrace::recording::mcap
