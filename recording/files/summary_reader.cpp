// SPDX-License-Identifier: Apache-2.0
#include "recording/files/summary_reader.h"

#include <algorithm>
#include <span>

#include "recording/format/checksums.h"
#include "recording/format/chunk_records.h"
#include "recording/format/mcap.h"

namespace millrace::recording {
namespace {

using mcap::Cursor;
using mcap::Opcode;
using mcap::Record;

constexpr std::uint64_t footer_content = 20;
constexpr std::uint64_t footer_bytes = mcap::record_head + footer_content;
constexpr std::uint64_t data_end_bytes = mcap::record_head + 4;

// The footer and the magic after it.
struct Footer {
  std::uint64_t summary = 0;  // offset of the summary
  std::uint32_t crc = 0;
  bool magic = false;
};

// nullopt: there is neither a footer nor the magic.
std::optional<Footer> read_footer(Bytes end) {
  const auto magic = std::as_bytes(std::span(mcap::magic));
  const bool has_magic = std::ranges::equal(end.last(magic.size()), magic);
  Cursor cursor(end);
  const bool has_footer =
      cursor.u8() == static_cast<std::uint8_t>(Opcode::footer) && cursor.u64() == footer_content;
  if (!has_magic && !has_footer) return std::nullopt;
  Footer footer;
  footer.summary = cursor.u64();
  cursor.u64();  // offset of the summary offsets
  footer.crc = cursor.u32();
  footer.magic = has_magic && has_footer;
  return footer;
}

bool add_channel(Bytes content, FileSummary& into) {
  ChannelRecord channel = read_channel(content);
  if (!channel.meta) return false;
  into.channels.insert_or_assign(channel.channel, std::move(*channel.meta));
  return true;
}

// Reads a ChunkIndex record into `into`, whose memory is used again.
bool read_chunk_index(Bytes content, ChunkEntry& into) {
  Cursor cursor(content);
  into.facts = {.first_time = cursor.u64(),
                .last_time = cursor.u64(),
                .offset = cursor.u64(),
                .bytes = cursor.u64()};
  Cursor indexes(cursor.bytes(cursor.u32()));
  into.indexes.clear();
  while (indexes.ok() && indexes.left() > 0)
    into.indexes.push_back({.channel = indexes.u16(), .offset = indexes.u64()});
  into.facts.index_bytes = cursor.u64();
  cursor.text();  // compression
  into.facts.records = cursor.u64();
  return cursor.ok() && indexes.ok();
}

bool add_chunk(Bytes content, FileSummary& into, ChunkEntry& entry) {
  if (!read_chunk_index(content, entry)) return false;
  ChunkPlace place{
      .offset = entry.facts.offset, .bytes = entry.facts.bytes, .number = into.chunks.size()};
  const std::uint64_t before =
      into.chunks.empty() ? 0 : into.chunks.back().offset + into.chunks.back().bytes;
  if (place.bytes < mcap::record_head || place.offset < before || place.offset > into.data_bytes ||
      place.bytes > into.data_bytes - place.offset)
    return false;
  place.channels.reserve(entry.indexes.size());
  for (const mcap::IndexPlace& index : entry.indexes) place.channels.push_back(index.channel);
  std::ranges::sort(place.channels);
  into.chunks.push_back(std::move(place));
  return true;
}

bool add_attachment(Bytes content, FileSummary& into) {
  Cursor cursor(content);
  const std::uint64_t offset = cursor.u64(), bytes = cursor.u64();
  cursor.u64();  // times
  cursor.u64();
  cursor.u64();  // size of the data
  if (cursor.text() != "parts") return cursor.ok();
  if (!cursor.ok() || offset > into.data_bytes || bytes > into.data_bytes - offset) return false;
  into.parts_offset = offset;
  into.parts_bytes = bytes;
  return true;
}

bool add(const Record& record, FileSummary& into, ChunkEntry& entry) {
  switch (record.opcode) {
    case Opcode::channel: return add_channel(record.content, into);
    case Opcode::chunk_index: return add_chunk(record.content, into, entry);
    case Opcode::attachment_index: return add_attachment(record.content, into);
    default: return true;
  }
}

// The checksum of a part of the file. The part may be larger than memory: a footer that is damaged
// can name any.
std::uint32_t checksum(FileWindow& file, std::uint64_t begin, std::uint64_t end) {
  std::uint32_t crc = 0;
  while (begin < end) {
    const Bytes bytes = file.read(begin, std::min<std::uint64_t>(FileWindow::ahead, end - begin));
    if (bytes.empty()) break;
    crc = crc32(bytes, crc);
    begin += bytes.size();
  }
  return crc;
}

}  // namespace

Result<std::optional<FileSummary>, std::string> read_summary(FileWindow& file) {
  const std::uint64_t least = mcap::magic.size() + data_end_bytes;
  const std::uint64_t end_bytes = footer_bytes + mcap::magic.size();
  if (file.size() < least + end_bytes) return std::optional<FileSummary>();
  const std::uint64_t footer_at = file.size() - end_bytes;
  const Bytes end = file.read(footer_at, end_bytes);
  if (file.unreadable())
    return "the end of the file cannot be read: " + file.unreadable().message();
  if (end.size() < end_bytes) return std::optional<FileSummary>();
  const auto footer = read_footer(end);
  if (!footer) return std::optional<FileSummary>();
  if (!footer->magic) return std::string("the end of the file is damaged");
  if (footer->summary < least || footer->summary > footer_at)
    return std::string("the footer is damaged");

  const std::uint64_t covered_end = file.size() - mcap::magic.size() - 4;
  if (checksum(file, footer->summary, covered_end) != footer->crc)
    return std::string("the checksum of the summary is wrong");

  const std::uint64_t data_end_at = footer->summary - data_end_bytes;
  const std::uint64_t bytes = file.size() - data_end_at;
  const Bytes read = file.read(data_end_at, bytes);
  if (read.size() < bytes) return std::string("the end of the file cannot be read");
  FileSummary summary{.data_bytes = data_end_at};
  Cursor data_end(read);
  if (data_end.u8() != static_cast<std::uint8_t>(Opcode::data_end) || data_end.u64() != 4)
    return std::string("the end of the data section is damaged");
  summary.data_crc = data_end.u32();
  Cursor cursor(read.subspan(data_end_bytes, footer_at - footer->summary));
  ChunkEntry entry;
  while (cursor.left() > 0) {
    const auto record = cursor.record();
    if (!record || !add(*record, summary, entry)) return std::string("the summary is not valid");
  }
  return std::optional(std::move(summary));
}

std::optional<ChunkEntry> read_chunk_entry(FileWindow& file, const FileSummary& summary,
                                           std::uint64_t chunk) {
  const std::uint64_t begin = summary.data_bytes + data_end_bytes;
  Cursor cursor(file.read(begin, file.size() - begin));
  ChunkEntry entry;
  while (const auto record = cursor.record()) {
    if (record->opcode != Opcode::chunk_index || !read_chunk_index(record->content, entry) ||
        entry.facts.offset != chunk)
      continue;
    const std::uint64_t end = entry.facts.offset + entry.facts.bytes;
    if (entry.facts.index_bytes > summary.data_bytes - end) return std::nullopt;
    return entry;
  }
  return std::nullopt;
}

Result<std::vector<StreamPart>, std::string> read_parts(FileWindow& file,
                                                        const FileSummary& summary) {
  const Bytes record = file.read(summary.parts_offset, summary.parts_bytes);
  std::string damaged = "the list of the parts of streams is damaged";
  if (file.unreadable()) damaged += ": " + file.unreadable().message();
  Cursor cursor(record);
  const bool attachment = cursor.u8() == static_cast<std::uint8_t>(Opcode::attachment);
  if (!attachment || cursor.u64() != record.size() - mcap::record_head) return damaged;
  cursor.u64();  // times
  cursor.u64();
  cursor.text();  // name
  cursor.text();  // media type
  const Bytes parts = cursor.bytes(cursor.u64());
  if (!cursor.ok() || cursor.left() != 4) return damaged;
  const Bytes covered = record.subspan(mcap::record_head, cursor.offset() - mcap::record_head);
  if (crc32(covered) != cursor.u32()) return damaged;
  auto decoded = SliceDecoder().parts(parts);
  if (!decoded) return damaged;
  return std::move(*decoded);
}

}  // namespace millrace::recording
