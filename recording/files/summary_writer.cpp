// SPDX-License-Identifier: Apache-2.0
#include "recording/files/summary_writer.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "recording/files/file.h"
#include "recording/format/checksums.h"
#include "recording/format/mcap.h"

namespace millrace::recording {
namespace {

using mcap::Builder;
using mcap::Opcode;

constexpr std::uint16_t schema_id = 1;
constexpr std::string_view encoding = "flatbuffer";
constexpr std::string_view parts_name = "parts", parts_type = "application/octet-stream";
constexpr std::string_view metadata_name = "millrace";

// Runs `fields`, which appends the fields of a record of this kind. Returns its place in `into`.
template <class Fields>
RecordPlace append_record(std::vector<std::byte>& into, Opcode opcode, Fields fields) {
  Builder builder(into);
  const std::uint64_t offset = into.size();
  const std::size_t begun = builder.begin(opcode);
  fields(builder);
  builder.end(begun);
  return {offset, into.size() - offset};
}

void append_schema(std::vector<std::byte>& into) {
  append_record(into, Opcode::schema, [](Builder& builder) {
    builder.u16(schema_id);
    builder.text("millrace.recorded.Slice");
    builder.text(encoding);
    builder.u32(static_cast<std::uint32_t>(slice_schema().size()));
    builder.bytes(slice_schema());
  });
}

// Returns the bytes of the content.
std::uint64_t append_parts(std::vector<std::byte>& into, std::span<const StreamPart> parts) {
  SliceEncoder encoder;
  const Bytes content = encoder.encode(parts);
  append_record(into, Opcode::attachment, [&](Builder& builder) {
    const std::size_t begin = into.size();
    builder.u64(0);  // log_time
    builder.u64(0);  // create_time
    builder.text(parts_name);
    builder.text(parts_type);
    builder.u64(content.size());
    builder.bytes(content);
    builder.u32(crc32(Bytes(into).subspan(begin)));
  });
  return content.size();
}

void append_attachment_index(std::vector<std::byte>& into, RecordPlace attachment,
                             std::uint64_t content) {
  append_record(into, Opcode::attachment_index, [&](Builder& fields) {
    fields.u64(attachment.offset);
    fields.u64(attachment.bytes);
    fields.u64(0);  // log_time
    fields.u64(0);  // create_time
    fields.u64(content);
    fields.text(parts_name);
    fields.text(parts_type);
  });
}

void append_metadata_index(std::vector<std::byte>& into, RecordPlace metadata) {
  append_record(into, Opcode::metadata_index, [&](Builder& fields) {
    fields.u64(metadata.offset);
    fields.u64(metadata.bytes);
    fields.text(metadata_name);
  });
}

// Runs `append`, which appends the records of one kind to the summary, and keeps their place in the
// file for a SummaryOffset record.
class Groups {
 public:
  Groups(std::vector<std::byte>& into, std::uint64_t offset) : into_(into), offset_(offset) {}

  template <class Append>
  void add(Opcode opcode, Append append) {
    const std::uint64_t begin = into_.size();
    append();
    if (into_.size() > begin) groups_.push_back({opcode, {begin, into_.size() - begin}});
  }

  void append_offsets() const {
    for (const Group& group : groups_)
      append_record(into_, Opcode::summary_offset, [&](Builder& fields) {
        fields.u8(static_cast<std::uint8_t>(group.opcode));
        fields.u64(offset_ + group.place.offset);
        fields.u64(group.place.bytes);
      });
  }

 private:
  struct Group {
    Opcode opcode{};
    RecordPlace place{};
  };

  std::vector<std::byte>& into_;
  std::uint64_t offset_;
  std::vector<Group> groups_;
};

// The checksum of the footer covers the summary and the footer up to the checksum.
void append_footer(std::vector<std::byte>& into, std::uint64_t offset, std::size_t summary,
                   std::size_t offsets) {
  constexpr std::uint64_t length = 8 + 8 + 4;
  Builder builder(into);
  builder.u8(static_cast<std::uint8_t>(Opcode::footer));
  builder.u64(length);
  builder.u64(offset + summary);
  builder.u64(offset + offsets);
  builder.u32(crc32(Bytes(into).subspan(summary)));
}

void append_magic(std::vector<std::byte>& into) {
  Builder(into).bytes(std::as_bytes(std::span(mcap::magic)));
}

}  // namespace

RecordPlace append_head(std::vector<std::byte>& into, const FileHead& head) {
  append_magic(into);
  append_record(into, Opcode::header, [](Builder& fields) {
    fields.text(mcap::profile);
    fields.text("millrace");  // the library
  });
  const RecordPlace metadata = append_record(into, Opcode::metadata, [&](Builder& fields) {
    fields.text(metadata_name);
    fields.text_map(to_metadata(head));
  });
  append_schema(into);
  return metadata;
}

Bytes SummaryWriter::add_channel(std::uint16_t channel, const StreamMeta& meta) {
  const auto [entry, added] = channels_.try_emplace(channel);
  RecordPlace& place = entry->second;
  if (!added) return Bytes(channel_records_).subspan(place.offset, place.bytes);
  auto metadata = to_metadata(meta);
  const auto append = [&] {
    return append_record(channel_records_, Opcode::channel, [&](Builder& fields) {
      fields.u16(channel);
      fields.u16(schema_id);
      fields.text(std::to_string(meta.number));
      fields.text(encoding);
      fields.text_map(metadata);
    });
  };
  // Readers ignore the key. A record of padding would align the messages too, but other readers
  // accept no private record in a chunk.
  std::string& pad = metadata["pad"];
  place = append();
  if (const std::size_t over = place.bytes % 8; over > 0) {
    pad.assign(8 - over, ' ');
    channel_records_.resize(place.offset);
    place = append();
  }
  return Bytes(channel_records_).subspan(place.offset, place.bytes);
}

void SummaryWriter::add_chunk(const mcap::ChunkFacts& chunk,
                              std::span<const mcap::IndexPlace> indexes) {
  first_time_ = chunks_ == 0 ? chunk.first_time : std::min(first_time_, chunk.first_time);
  last_time_ = std::max(last_time_, chunk.last_time);
  ++chunks_;
  append_record(chunk_indexes_, Opcode::chunk_index, [&](Builder& fields) {
    fields.u64(chunk.first_time);
    fields.u64(chunk.last_time);
    fields.u64(chunk.offset);
    fields.u64(chunk.bytes);
    fields.u32(static_cast<std::uint32_t>(10 * indexes.size()));
    for (const mcap::IndexPlace& index : indexes) {
      fields.u16(index.channel);
      fields.u64(index.offset);
    }
    fields.u64(chunk.index_bytes);
    fields.text("");  // no compression
    fields.u64(chunk.records);
    fields.u64(chunk.records);
  });
}

void SummaryWriter::append_statistics(std::vector<std::byte>& into,
                                      std::span<const StreamPart> parts) const {
  std::uint64_t messages = 0;
  for (const StreamPart& part : parts) messages += part.slices;
  append_record(into, Opcode::statistics, [&](Builder& fields) {
    fields.u64(messages);
    fields.u16(1);  // schemas
    fields.u32(static_cast<std::uint32_t>(channels_.size()));
    fields.u32(1);  // attachments
    fields.u32(1);  // metadata records
    fields.u32(static_cast<std::uint32_t>(chunks_));
    fields.u64(first_time_);
    fields.u64(last_time_);
    fields.u32(static_cast<std::uint32_t>(10 * parts.size()));
    for (const StreamPart& part : parts) {
      fields.u16(part.channel);
      fields.u64(part.slices);
    }
  });
}

Result<std::uint64_t, std::error_code> SummaryWriter::write_end(int file, std::uint64_t offset,
                                                                std::uint32_t crc) const {
  std::vector<std::byte> end;
  const std::size_t summary = append_end(end, offset, crc);
  auto done = write_all(file, Bytes(end).first(summary));
  if (done) done = sync_data(file);
  if (done) done = write_all(file, Bytes(end).subspan(summary));
  if (done) done = sync_data(file);
  if (!done) return done.error();
  return offset + end.size();
}

std::size_t SummaryWriter::append_end(std::vector<std::byte>& into, std::uint64_t offset,
                                      std::uint32_t crc) const {
  const std::vector<StreamPart> parts = parts_.list();
  const std::uint64_t parts_bytes = append_parts(into, parts);
  const RecordPlace attachment{offset, into.size()};
  crc = crc32(into, crc);
  append_record(into, Opcode::data_end, [&](Builder& fields) { fields.u32(crc); });
  const std::size_t summary = into.size();
  Groups groups(into, offset);
  groups.add(Opcode::schema, [&] { append_schema(into); });
  groups.add(Opcode::channel, [&] { Builder(into).bytes(channel_records_); });
  groups.add(Opcode::statistics, [&] { append_statistics(into, parts); });
  groups.add(Opcode::chunk_index, [&] { Builder(into).bytes(chunk_indexes_); });
  groups.add(Opcode::attachment_index,
             [&] { append_attachment_index(into, attachment, parts_bytes); });
  groups.add(Opcode::metadata_index, [&] { append_metadata_index(into, metadata_); });
  const std::size_t offsets = into.size();
  groups.append_offsets();
  append_footer(into, offset, summary, offsets);
  append_magic(into);
  return summary;
}

}  // namespace millrace::recording
