// SPDX-License-Identifier: Apache-2.0
#include "recording/files/file_writer.h"

#include <algorithm>
#include <utility>

#include "recording/files/file.h"
#include "recording/files/summary_writer.h"
#include "recording/format/checksums.h"
#include "recording/format/chunk_builder.h"
#include "recording/format/file_start.h"
#include "recording/format/mcap.h"

namespace millrace::recording {
namespace {

std::size_t size_of(std::span<const Bytes> parts) {
  std::size_t size = 0;
  for (const Bytes part : parts) size += part.size();
  return size;
}

}  // namespace

struct FileWriter::Impl {
  Impl(FileDescriptor opened, const FileHead& head, std::uint64_t reserved_bytes)
      : file(std::move(opened)),
        reserved_step(reserved_bytes),
        id(*id_from(head.id)),
        chunk(id),
        summary(append_head(pending, head)) {
    add_to_checksum();
  }

  // Adds the end of `pending` to the checksum of the file: while these bytes are in the cache.
  void add_to_checksum() {
    crc = crc32(Bytes(pending).subspan(in_checksum), crc);
    in_checksum = pending.size();
  }

  void end_chunk() {
    if (!chunk.begun()) return;
    const mcap::ChunkFacts facts = chunk.end();
    summary.add_chunk(facts, chunk.places());
    add_to_checksum();
  }

  // Ends the chunk if there is no room for these records.
  void make_room(std::size_t records) {
    if (chunk.begun() && chunk.record_bytes() + records > chunk_bytes) end_chunk();
    if (!chunk.begun()) chunk.begin(pending, written, summary.chunks());
  }

  // `new_channel` is the channel of the stream if it has no slice yet.
  void add(const StreamMeta& meta, std::uint16_t new_channel, std::uint32_t number,
           std::int64_t wall, const Slice& slice, std::span<const Bytes> payload) {
    const auto time = static_cast<std::uint64_t>(std::max<std::int64_t>(wall, 0));
    const std::size_t message = mcap::message_bytes(size_of(payload));
    const StreamPart* part = summary.parts().find(slice.stream);
    const std::uint16_t channel = part ? part->channel : new_channel;
    if (part) {
      make_room(message);
    } else {
      const Bytes record = summary.add_channel(channel, meta);
      make_room(record.size() + message);
      chunk.add_channel(record);
    }
    chunk.add_message(channel, number, time, payload);
    summary.parts().add(channel, number, slice);
  }

  // The marker is a new one: its number is that of the chunk in this file.
  void copy(const RawChunk& raw) {
    end_chunk();
    mcap::ChunkFacts facts = raw.entry.facts;
    const std::uint64_t begin = written + pending.size() + mcap::record_head + mcap::marker_content;
    const std::size_t padding = mcap::most_padding - (begin - 1) % (mcap::most_padding + 1);
    mcap::append(pending, {.id = id, .number = summary.chunks(), .length = facts.bytes}, padding);
    mcap::Builder builder(pending);
    facts.offset = written + pending.size();
    builder.bytes(raw.record);
    builder.bytes(raw.indexes);
    std::vector<mcap::IndexPlace> places = raw.entry.indexes;
    for (mcap::IndexPlace& place : places) place.offset += facts.offset - raw.entry.facts.offset;
    summary.add_chunk(facts, places);
    add_to_checksum();
  }

  Result<void, std::error_code> write() {
    end_chunk();
    if (pending.empty()) return {};
    const std::uint64_t end = written + pending.size();
    while (reserved_step > 0 && end > reserved) {
      const auto done = reserve(file.get(), reserved, reserved_step);
      if (!done) return done;
      reserved += reserved_step;
    }
    const auto done = write_all(file.get(), pending);
    if (!done) return done;
    written = end;
    pending.clear();
    in_checksum = 0;
    return {};
  }

  Result<void, std::error_code> seal() {
    auto done = write();
    if (!done) return done;
    const auto size = summary.write_end(file.get(), written, crc);
    if (!size) return size.error();
    written = *size;
    return truncate(file.get(), written);  // gives back the reserved space
  }

  FileDescriptor file;
  std::vector<std::byte> pending;  // bytes of the file that are not written
  std::uint64_t written = 0, reserved = 0;
  std::uint64_t reserved_step;
  std::size_t in_checksum = 0;  // bytes of `pending` that are in `crc`
  std::uint32_t crc = 0;        // the checksum of the file up to there
  SliceEncoder encoder;
  std::vector<Bytes> parts;  // the slice that is being added, in parts
  FileId id;
  mcap::ChunkBuilder chunk;
  SummaryWriter summary;
};

Result<FileWriter, std::error_code> FileWriter::begin(FileDescriptor file, const FileHead& head,
                                                      std::uint64_t reserved) {
  FileWriter writer(std::make_unique<Impl>(std::move(file), head, reserved));
  auto done = writer.write();
  if (done) done = writer.sync();
  if (!done) return done.error();
  return writer;
}

FileWriter::FileWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
FileWriter::FileWriter(FileWriter&&) noexcept = default;
FileWriter& FileWriter::operator=(FileWriter&&) noexcept = default;
FileWriter::~FileWriter() = default;

bool FileWriter::has_channel(std::uint64_t stream) const {
  return impl_->summary.parts().find(stream) != nullptr;
}

std::size_t FileWriter::channels() const { return impl_->summary.parts().size(); }

void FileWriter::add(const StreamMeta& meta, std::uint32_t number, std::int64_t wall,
                     const Slice& slice, std::span<const Bytes> frames) {
  const auto around = impl_->encoder.encode_around(slice, size_of(frames));
  std::vector<Bytes>& parts = impl_->parts;
  parts.assign(1, around.before);
  parts.insert(parts.end(), frames.begin(), frames.end());
  parts.push_back(around.after);
  const auto next = static_cast<std::uint16_t>(channels() + 1);
  impl_->add(meta, next, number, wall, slice, parts);
}

void FileWriter::copy(const StreamMeta& meta, const SliceMessage& message, const Slice& slice) {
  // Without the last zero byte.
  const Bytes payload = message.bytes.first(message.bytes.size() - message.bytes.size() % 8);
  impl_->add(meta, message.channel, message.number, message.wall, slice, {&payload, 1});
}

void FileWriter::copy(const RawChunk& chunk, const std::map<std::uint16_t, StreamMeta>& channels) {
  for (const mcap::IndexPlace& index : chunk.entry.indexes)
    impl_->summary.add_channel(index.channel, channels.at(index.channel));
  impl_->copy(chunk);
}

void FileWriter::set_part(const StreamPart& part, const StreamMeta& meta) {
  impl_->summary.add_channel(part.channel, meta);
  impl_->summary.parts().put(part);
}

void FileWriter::add_loss(std::uint64_t stream) { impl_->summary.parts().set_lost(stream); }

std::size_t FileWriter::uncommitted() const {
  return impl_->pending.size() + (impl_->chunk.begun() ? impl_->chunk.index_bytes() : 0);
}

std::uint64_t FileWriter::size() const { return impl_->written + uncommitted(); }

Result<void, std::error_code> FileWriter::write() { return impl_->write(); }
Result<void, std::error_code> FileWriter::sync() { return sync_data(impl_->file.get()); }
Result<void, std::error_code> FileWriter::seal() { return impl_->seal(); }

}  // namespace millrace::recording
