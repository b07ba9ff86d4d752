// SPDX-License-Identifier: Apache-2.0
#include "recording/format/chunk_records.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "recording/format/checksums.h"
#include "recording/format/mcap.h"

namespace millrace::recording {
namespace {

using mcap::Cursor;
using mcap::Opcode;

// The fields of a Chunk record.
struct ChunkFields {
  std::uint64_t start = 0, end = 0;
  std::uint32_t crc = 0;
  Bytes records{};
};

std::optional<ChunkFields> read_fields(Bytes record) {
  Cursor head(record);
  if (head.u8() != static_cast<std::uint8_t>(Opcode::chunk)) return std::nullopt;
  if (head.u64() != record.size() - mcap::record_head || !head.ok()) return std::nullopt;
  Cursor cursor(record.subspan(mcap::record_head));
  ChunkFields fields{.start = cursor.u64(), .end = cursor.u64()};
  const std::uint64_t size = cursor.u64();
  fields.crc = cursor.u32();
  const std::string_view compression = cursor.text();
  const std::uint64_t length = cursor.u64();
  fields.records = cursor.bytes(length);
  if (!cursor.ok() || cursor.left() > 0 || size != length || !compression.empty())
    return std::nullopt;
  return fields;
}

bool add_message(const mcap::Record& record, std::uint64_t offset, ChunkRecords& into) {
  Cursor cursor(record.content);
  SliceMessage message;
  message.channel = cursor.u16();
  message.number = cursor.u32();
  const std::uint64_t wall = cursor.u64();
  const bool one_time = cursor.u64() == wall;
  if (!cursor.ok() || !one_time) return false;
  message.wall = static_cast<std::int64_t>(wall);
  message.offset = offset;
  message.bytes = cursor.bytes(cursor.left());
  const bool first = into.messages.empty();
  into.first_wall = first ? wall : std::min(into.first_wall, wall);
  into.last_wall = first ? wall : std::max(into.last_wall, wall);
  into.messages.push_back(message);
  return true;
}

}  // namespace

std::vector<std::uint16_t> channels_of(const ChunkRecords& chunk) {
  std::vector<std::uint16_t> channels;
  for (const SliceMessage& message : chunk.messages) channels.push_back(message.channel);
  std::ranges::sort(channels);
  channels.erase(std::unique(channels.begin(), channels.end()), channels.end());
  return channels;
}

std::uint64_t index_bytes(const ChunkRecords& chunk) {
  constexpr std::size_t index = mcap::record_head + 2 + 4, entry = 16;
  return channels_of(chunk).size() * index + chunk.messages.size() * entry;
}

ChannelRecord read_channel(Bytes content) {
  Cursor cursor(content);
  ChannelRecord read{.channel = cursor.u16()};
  cursor.u16();   // schema
  cursor.text();  // topic
  cursor.text();  // encoding of messages
  const auto metadata = cursor.text_map();
  read.meta = cursor.ok() ? meta_from(metadata) : std::string("the length");
  return read;
}

Result<ChunkRecords, std::string> read_chunk(Bytes record, ChunkCheck check) {
  const auto fields = read_fields(record);
  if (!fields) return std::string("has a damaged head");
  if (check == ChunkCheck::checksum && crc32(fields->records) != fields->crc)
    return std::string("has a wrong checksum");
  ChunkRecords read{.bytes = fields->records.size()};
  Cursor cursor(fields->records);
  while (cursor.left() > 0) {
    const std::size_t offset = cursor.offset();
    const auto next = cursor.record();
    if (!next) return std::string("has a record that is too long");
    if (next->opcode == Opcode::channel) read.channels.push_back(read_channel(next->content));
    if (next->opcode == Opcode::message && !add_message(*next, offset, read))
      return std::string("has a message that is too short");
  }
  // The checksum does not cover the times of the chunk.
  if (fields->start != read.first_wall || fields->end != read.last_wall)
    return std::string("has wrong times");
  return read;
}

}  // namespace millrace::recording
