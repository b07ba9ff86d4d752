// SPDX-License-Identifier: Apache-2.0
#include "recording/files/recovery.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#include "recording/files/chunk_scan.h"
#include "recording/files/rewrite.h"
#include "recording/files/summary_reader.h"
#include "recording/files/summary_writer.h"
#include "recording/format/checksums.h"
#include "recording/format/chunk_builder.h"
#include "recording/format/file_start.h"

namespace millrace::recording {
namespace {

void check(const Result<void, std::error_code>& result, const char* call) {
  if (!result) throw std::system_error(result.error(), call);
}

// An unsealed file whose bytes before the torn tail are as they were written: it can be sealed in
// place. Functions throw std::system_error. Confined to one thread.
class IntactFile {
 public:
  // nullopt: something is damaged, cannot be read, or is not as this version writes it.
  static std::optional<IntactFile> read(int file, std::uint64_t size);

  // Cuts the tail, and writes the last indexes and the summary.
  void seal(Recovered& recovered);

  // The bytes after the last whole chunk and its whole indexes.
  std::uint64_t torn_bytes() const { return size_ - std::min(size_, indexed_end_); }
  const PartTable& parts() const { return summary_.parts(); }

 private:
  IntactFile(int file, std::uint64_t size, RecordPlace metadata, std::uint64_t end)
      : file_(file), size_(size), summary_(metadata), end_(end), indexed_end_(end) {}

  bool add(const FoundChunk& chunk);
  bool add_records(const ChunkRecords& records);
  bool indexes_are_whole();

  int file_;
  std::uint64_t size_;
  SummaryWriter summary_;
  std::map<std::uint16_t, StreamMeta> channels_;
  std::uint64_t end_;               // end of the last whole chunk
  std::uint64_t indexed_end_;       // end of its whole indexes
  std::vector<std::byte> indexes_;  // those that belong behind the last whole chunk
  FileWindow window_;
  SliceDecoder decoder_;
};

std::optional<IntactFile> IntactFile::read(int file, std::uint64_t size) {
  FileWindow window;
  window.reset(file, size);
  const auto start = read_start(window.read(0, start_bytes));
  if (!start || !start->complete || !start->damage.empty()) return std::nullopt;
  // Header and Schema have no checksum: a file of another version is rewritten like a damaged one.
  std::vector<std::byte> head;
  append_head(head, *start->head);
  if (!std::ranges::equal(window.read(0, start->end), head)) return std::nullopt;
  IntactFile intact(file, size, {start->metadata_offset, start->metadata_bytes}, start->end);
  intact.window_.reset(file, size);
  ChunkScan scan(start->end, id_from(start->head->id));
  scan.reset(file, size);
  while (const auto chunk = scan.next())
    if (scan.damage() || !intact.add(*chunk)) return std::nullopt;
  if (scan.has_damaged_tail() || scan.unreadable()) return std::nullopt;
  intact.indexed_end_ = scan.end();
  return intact;
}

bool IntactFile::indexes_are_whole() {
  return std::ranges::equal(window_.read(end_, indexes_.size()), indexes_);
}

bool IntactFile::add(const FoundChunk& chunk) {
  // The indexes of the chunk before this one have no checksum.
  if (chunk.marker != end_ + indexes_.size() || !indexes_are_whole()) return false;
  if (!add_records(chunk.records)) return false;
  end_ = chunk.offset + chunk.bytes;
  std::vector<mcap::IndexEntry> entries;
  for (const SliceMessage& message : chunk.records.messages)
    entries.push_back({.channel = message.channel,
                       .time = static_cast<std::uint64_t>(message.wall),
                       .offset = message.offset});
  std::vector<mcap::IndexPlace> places;
  indexes_.clear();
  mcap::append_indexes(indexes_, end_, entries, places);
  summary_.add_chunk({.first_time = chunk.records.first_wall,
                      .last_time = chunk.records.last_wall,
                      .offset = chunk.offset,
                      .bytes = chunk.bytes,
                      .records = chunk.records.bytes,
                      .index_bytes = indexes_.size()},
                     places);
  return true;
}

bool IntactFile::add_records(const ChunkRecords& records) {
  for (const ChannelRecord& channel : records.channels) {
    if (!channel.meta || !channels_.emplace(channel.channel, *channel.meta).second) return false;
    summary_.add_channel(channel.channel, *channel.meta);
  }
  for (const SliceMessage& message : records.messages) {
    const auto meta = channels_.find(message.channel);
    if (meta == channels_.end()) return false;
    const auto slice =
        decoder_.slice(message.bytes, meta->second.number, meta->second.frames.bytes());
    if (!slice || !summary_.parts().can_follow(message.number, *slice)) return false;
    summary_.parts().add(message.channel, message.number, *slice);
  }
  return true;
}

void IntactFile::seal(Recovered& recovered) {
  struct stat facts {};
  if (::fstat(file_, &facts) != 0) throw std::system_error(errno, std::generic_category(), "fstat");
  std::uint32_t crc = 0;
  for (std::uint64_t at = 0; at < end_;) {
    const Bytes bytes = window_.read(at, std::min<std::uint64_t>(FileWindow::ahead, end_ - at));
    if (bytes.empty() || window_.unreadable())
      throw std::system_error(EIO, std::generic_category(), "read");
    crc = crc32(bytes, crc);
    at += bytes.size();
  }
  crc = crc32(indexes_, crc);
  // Also gives back the space that the writer reserved.
  check(truncate(file_, end_), "ftruncate");
  if (::lseek(file_, static_cast<off_t>(end_), SEEK_SET) < 0)
    throw std::system_error(errno, std::generic_category(), "lseek");
  check(write_all(file_, indexes_), "write");
  const auto size = summary_.write_end(file_, end_ + indexes_.size(), crc);
  if (!size) throw std::system_error(size.error(), "write");
  keep_times(file_, facts, recovered.file, recovered.notices);
}

void add_streams(const PartTable& parts, std::vector<std::string>& into) {
  for (const LostPart& lost : parts.losses())
    into.push_back(std::to_string(lost.stream) + " from position " + std::to_string(lost.begin) +
                   " to " + std::to_string(lost.end));
  for (const StreamPart& part : parts.list())
    if (!part.closed)
      into.push_back(std::to_string(part.stream) + " from position " + std::to_string(part.end));
}

Result<Recovered, std::string> recover_damaged(const Directory& directory, FileNumber number) {
  auto file = RecordingFile::open(directory, number, Reading::copied);
  if (!file) return file.error();
  Recovered recovered{.file = number};
  (file->has_damaged_tail() ? recovered.lost_bytes : recovered.cut_bytes) = file->torn_bytes();
  if (file->unreadable()) return unreadable_line(number, file->unreadable());
  auto result = rewrite(directory, *file, [](std::uint64_t) { return true; });
  if (!result) return result.error();
  recovered.notices = std::move(result->notices);
  for (const Damage& damage : file->damages()) recovered.lost_bytes += damage.bytes;
  recovered.lost_bytes += result->unread_bytes;
  add_streams(result->parts, recovered.streams);
  for (const std::uint16_t channel : result->unread_channels)
    recovered.streams.push_back("channel " + std::to_string(channel) + ", which is damaged");
  return recovered;
}

}  // namespace

Result<Recovered, std::string> recover(const Directory& directory, FileNumber number) {
  const std::string name = Directory::file_name(number);
  try {
    const auto file = directory.open_to_repair(number);
    if (!file) return name + ": " + file.error().message();
    const std::uint64_t size = file_size(file->get());
    FileWindow window;
    window.reset(file->get(), size);
    const auto start = read_start(window.read(0, start_bytes));
    if (window.unreadable() && (!start || !start->head))
      return name + ": " + window.unreadable().message();
    if (!start) return name + ": " + start.error();
    if (const auto summary = read_summary(window); summary && *summary)
      return Recovered{.file = number};
    if (window.failed()) return unreadable_line(number, window.failed());
    auto intact = IntactFile::read(file->get(), size);
    if (!intact) return recover_damaged(directory, number);
    Recovered recovered{.file = number, .cut_bytes = intact->torn_bytes()};
    add_streams(intact->parts(), recovered.streams);
    intact->seal(recovered);
    return recovered;
  } catch (const std::system_error& error) {
    return name + ": " + error.what();
  }
}

}  // namespace millrace::recording
