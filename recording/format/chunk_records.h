// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "recording/format/stream_meta.h"

namespace millrace::recording {

// A message in a chunk: a slice, not verified by itself. The checksum of the chunk is good.
struct SliceMessage {
  std::uint16_t channel = 0;
  std::uint32_t number = 0;  // the slice's in its stream
  std::int64_t wall = 0;     // MCAP's log_time: nanoseconds since 1970
  std::uint64_t offset = 0;  // the Message record's in the records of the chunk
  Bytes bytes{};             // the message
};

// A channel, in the chunk of its first message.
struct ChannelRecord {
  std::uint16_t channel = 0;
  Result<StreamMeta, std::string> meta = std::string();  // or the key of the metadata that is wrong
};

// The records of a Chunk record, in the order of the file.
struct ChunkRecords {
  std::vector<ChannelRecord> channels{};
  std::vector<SliceMessage> messages{};
  std::uint64_t first_wall = 0, last_wall = 0;  // earliest and latest time of a message; 0: none
  std::uint64_t bytes = 0;                      // sum of all records
};

// The channels with messages, ascending.
std::vector<std::uint16_t> channels_of(const ChunkRecords& chunk);

// The bytes of the MessageIndex records that follow the chunk.
std::uint64_t index_bytes(const ChunkRecords& chunk);

// How much of a chunk is read.
enum class ChunkCheck { trust, checksum };

// Reads a whole Chunk record, which is in memory, and checks that its lengths agree, and its
// checksum. The error is a sentence of which the chunk is the subject: "has a wrong checksum".
Result<ChunkRecords, std::string> read_chunk(Bytes record, ChunkCheck check);

// Reads a Channel record of a chunk or of a summary.
ChannelRecord read_channel(Bytes content);

}  // namespace millrace::recording
