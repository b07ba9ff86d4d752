// SPDX-License-Identifier: Apache-2.0
#include "recording/files/recording_file.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "recording/format/checksums.h"
#include "recording/format/file_start.h"

namespace millrace::recording {
namespace {

// Unsealed files grow: address space for more is taken at once, so that few mappings are needed.
constexpr std::uint64_t least_mapped = 64 << 20;
constexpr std::size_t most_named = 10;

}  // namespace

RecordingFile::RecordingFile(FileDescriptor file, FileNumber number, Reading reading)
    : file_(std::move(file)), reading_(reading) {
  head_.file = number;
  head_.first_stream = 0;
}

Result<RecordingFile, std::string> RecordingFile::open(const Directory& directory,
                                                       FileNumber number, Reading reading) {
  const std::string name = Directory::file_name(number);
  auto descriptor = directory.open_to_read(number);
  if (!descriptor) return name + ": " + descriptor.error().message();
  try {
    return open(std::move(*descriptor), number, reading);
  } catch (const std::system_error& error) {
    return name + ": " + error.what();
  }
}

Result<RecordingFile, std::string> RecordingFile::open(FileDescriptor descriptor, FileNumber number,
                                                       Reading reading) {
  RecordingFile file(std::move(descriptor), number, reading);
  file.size_ = file_size(file.file_.get());
  if (auto error = file.begin()) return Directory::file_name(number) + ": " + *error;
  auto summary = read_summary(file.window_);
  if (!summary) file.damage(0, 0, summary.error());
  if (summary && *summary)
    file.take(std::move(**summary));
  else
    file.scan();
  return file;
}

void RecordingFile::close_if_sealed() {
  if (sealed()) file_ = FileDescriptor();
}

// Reads the first records. Returns an error if this is not a recording file.
std::optional<std::string> RecordingFile::begin() {
  window_.reset(file_.get(), size_);
  const auto start = read_start(window_.read(0, start_bytes));
  if (window_.unreadable() && (!start || !start->head)) return window_.unreadable().message();
  if (!start) return start.error();
  // The bytes that could not be read are not of the first records.
  if (window_.failed() && start->complete && start->damage.empty())
    window_.reset(file_.get(), size_);
  const FileNumber number = head_.file;
  if (start->head) head_ = *start->head;
  head_.file = number;
  begun_ = start->complete;
  start_damage_ = start->damage;
  if (begun_ && !start_damage_.empty()) damage(0, start->end, start_damage_);
  scan_.emplace(start->end, id_from(head_.id));
  return std::nullopt;
}

bool RecordingFile::refresh() {
  if (sealed()) return false;
  const std::uint64_t size = file_size(file_.get());
  if (size == size_) return false;
  size_ = size;
  window_.reset(file_.get(), size_);
  // The error of a file that was accepted before can only be a part of the first records.
  if (!begun_ && chunks_.empty() && begin()) return false;
  const bool more = scan();
  become_sealed();
  return more;
}

// Finds further chunks by their markers.
bool RecordingFile::scan() {
  const std::size_t before = chunks_.size();
  scan_->reset(file_.get(), size_);
  while (const auto chunk = scan_->next()) add(*chunk);
  if (chunks_.size() == before) return false;
  if (!begun_) {
    begun_ = true;
    damage(0, scan_->end(), start_damage_);
  }
  if (scan_->id()) head_.id = to_hex(*scan_->id());
  cover(chunks_.back().offset + chunks_.back().bytes);
  return true;
}

void RecordingFile::add(const FoundChunk& chunk) {
  if (const auto& gap = scan_->damage()) damage(gap->begin, gap->end - gap->begin, gap->why);
  for (const ChannelRecord& channel : chunk.records.channels) {
    if (channel.meta)
      channels_.insert_or_assign(channel.channel, *channel.meta);
    else
      damage(
          chunk.offset, chunk.bytes,
          "channel " + std::to_string(channel.channel) + " is not valid: " + channel.meta.error());
  }
  chunks_.push_back({.offset = chunk.offset,
                     .bytes = chunk.bytes,
                     .number = chunk.number,
                     .channels = channels_of(chunk.records)});
  checked_.push_back(Checked::good);
}

void RecordingFile::take(FileSummary summary) {
  summary_ = std::move(summary);
  channels_ = std::move(summary_->channels);
  chunks_ = std::move(summary_->chunks);
  checked_.assign(chunks_.size(), Checked::no);
  cover(size_);
}

// A file that was scanned keeps its list of chunks, because readers count in the list.
void RecordingFile::become_sealed() {
  auto summary = read_summary(window_);
  if (!summary || !*summary) return;
  const auto same = [](const ChunkPlace& a, const ChunkPlace& b) { return a.offset == b.offset; };
  if (!std::ranges::equal((**summary).chunks, chunks_, same)) return;
  channels_ = (**summary).channels;
  summary_ = std::move(**summary);
  cover(size_);
}

// Maps at least these bytes. Only whole chunks are read through the mapping, so that a process that
// cuts the tail of the file cannot end this one.
void RecordingFile::cover(std::uint64_t bytes) {
  if (reading_ == Reading::copied || bytes == 0 ||
      (!maps_.empty() && maps_.back().bytes().size() >= bytes))
    return;
  maps_.emplace_back(file_.get(), sealed() ? bytes : std::max(2 * bytes, least_mapped));
}

std::uint64_t RecordingFile::torn_bytes() const {
  if (sealed()) return 0;
  return begun_ ? size_ - std::min(size_, scan_->end()) : size_;
}

std::error_code RecordingFile::unreadable() const {
  return window_.failed() ? window_.failed() : scan_->unreadable();
}

Bytes RecordingFile::read(std::uint64_t offset, std::uint64_t bytes, Reading reading) {
  if (reading == Reading::copied) return window_.read(offset, bytes);
  return maps_.back().bytes().subspan(offset, bytes);
}

Result<std::vector<SliceMessage>, Damage> RecordingFile::messages(std::size_t chunk) {
  return messages(chunk, reading_);
}

Result<std::vector<SliceMessage>, Damage> RecordingFile::messages(std::size_t chunk,
                                                                  Reading reading) {
  const ChunkPlace& place = chunks_[chunk];
  Checked& checked = checked_[chunk];
  const bool loaded = reading == Reading::copied || checked == Checked::good ||
                      maps_.back().load(place.offset, place.bytes);
  const Bytes record = loaded ? read(place.offset, place.bytes, reading) : Bytes();
  // A second read can differ: another process may have cut the file, or the disk has failed.
  const bool trusted = checked == Checked::good && reading == Reading::mapped;
  auto found = read_chunk(record, trusted ? ChunkCheck::trust : ChunkCheck::checksum);
  if (found) {
    checked = Checked::good;
    return std::move(found->messages);
  }
  std::string error = found.error();
  if (!loaded) error = "cannot be read";
  if (reading == Reading::copied && window_.unreadable())
    error = "cannot be read: " + window_.unreadable().message();
  const std::string why =
      "chunk " + std::to_string(place.number) + " " + error + lost_streams(place);
  if (std::exchange(checked, Checked::bad) == Checked::bad)
    return Damage{head_.file, place.offset, place.bytes, why};
  return damage(place.offset, place.bytes, why);
}

std::optional<std::uint16_t> RecordingFile::channel_of(std::uint64_t stream) {
  if (std::exchange(indexed_channels_, channels_.size()) < channels_.size())
    for (const auto& [channel, meta] : channels_)
      channels_by_stream_.try_emplace(meta.number, channel);
  const auto found = channels_by_stream_.find(stream);
  return found == channels_by_stream_.end() ? std::nullopt : std::optional(found->second);
}

const std::vector<std::uint32_t>& RecordingFile::chunks_of(std::uint16_t channel) {
  for (; indexed_chunks_ < chunks_.size(); ++indexed_chunks_) {
    const auto add = [this](std::uint16_t its_channel) {
      auto& chunks = chunks_by_channel_[its_channel];
      const auto chunk = static_cast<std::uint32_t>(indexed_chunks_);
      if (chunks.empty() || chunks.back() != chunk) chunks.push_back(chunk);
    };
    const std::vector<std::uint16_t>& channels = chunks_[indexed_chunks_].channels;
    std::ranges::for_each(channels, add);
    if (!channels.empty()) continue;
    // The file does not name them: they are in the messages.
    if (const auto read = messages(indexed_chunks_))
      for (const SliceMessage& message : *read) add(message.channel);
  }
  return chunks_by_channel_[channel];
}

const std::vector<SliceMessage>* RecordingFile::kept_messages(std::size_t chunk) {
  if (kept_.empty()) kept_.resize(most_kept);
  Kept& kept = kept_[chunk % kept_.size()];
  if (kept.used && kept.chunk == chunk) return &kept.messages;
  auto read = messages(chunk);
  if (!read) return nullptr;
  kept = {.chunk = chunk, .messages = std::move(*read), .used = true};
  return &kept.messages;
}

std::optional<RawChunk> RecordingFile::raw_chunk(std::size_t chunk) {
  if (!summary_) return std::nullopt;
  const auto entry = read_chunk_entry(window_, *summary_, chunks_[chunk].offset);
  if (!entry) return std::nullopt;
  const mcap::ChunkFacts& facts = entry->facts;
  const Bytes bytes = window_.read(facts.offset, facts.bytes + facts.index_bytes);
  if (bytes.size() < facts.bytes + facts.index_bytes) return std::nullopt;
  return RawChunk{*entry, bytes.first(facts.bytes), bytes.subspan(facts.bytes)};
}

// Computes them through a buffer also if the file is mapped: the messages are not handed out.
std::vector<StreamPart> RecordingFile::parts() {
  if (lists_parts()) {
    auto read = read_parts(window_, *summary_);
    if (read) return std::move(*read);
    damage(summary_->parts_offset, summary_->parts_bytes, read.error());
    summary_->parts_offset = 0;
  }
  while (added_ < chunks_.size()) {
    const std::size_t chunk = added_++;
    if (const auto read = messages(chunk, Reading::copied)) add_parts(chunk, *read);
  }
  if (!damages_.empty()) parts_.set_lost();
  return parts_.list();
}

void RecordingFile::add_parts(std::size_t chunk, const std::vector<SliceMessage>& messages) {
  SliceDecoder decoder;
  for (const SliceMessage& message : messages) {
    const auto meta = channels_.find(message.channel);
    const auto slice = meta == channels_.end() ? Result<Slice, WireError>(WireError::unknown)
                                               : decoder.slice(message.bytes, meta->second.number,
                                                               meta->second.frames.bytes());
    if (slice && parts_.can_follow(message.number, *slice)) {
      parts_.add(message.channel, message.number, *slice);
      continue;
    }
    const std::string name = "slice " + std::to_string(message.number) + " of channel " +
                             std::to_string(message.channel) + " in chunk " +
                             std::to_string(chunks_[chunk].number);
    damage(chunks_[chunk].offset, chunks_[chunk].bytes,
           name + (meta == channels_.end() ? " has no channel" : " is not valid"));
  }
}

bool RecordingFile::verify(const Visit& visit) {
  std::uint64_t end = 0;
  std::uint32_t crc = 0;
  // Adds the bytes up to `to` to the checksum of the data section. If the file has damage, the
  // checksum would show nothing more.
  const auto add_to_checksum = [&](std::uint64_t to) {
    while (summary_ && damages_.empty() && end < to) {
      const Bytes bytes = read(end, std::min<std::uint64_t>(FileWindow::ahead, to - end), reading_);
      if (bytes.empty()) return;
      crc = crc32(bytes, crc);
      end += bytes.size();
    }
  };
  for (std::size_t chunk = 0; chunk < chunks_.size(); ++chunk) {
    add_to_checksum(chunks_[chunk].offset);
    const auto read = messages(chunk);
    if (!lists_parts() && added_ == chunk) {
      ++added_;
      if (read) add_parts(chunk, *read);
    }
    if (read && visit) visit(chunk, *read);
    add_to_checksum(chunks_[chunk].offset + chunks_[chunk].bytes);
  }
  if (summary_) add_to_checksum(summary_->data_bytes);
  parts();
  const bool chunks_good = damages_.empty();
  if (summary_ && chunks_good && crc != summary_->data_crc)
    damage(
        0, summary_->data_bytes,
        "the checksum of the data section is wrong, but all chunks are good: the records between "
        "them are damaged, no slice is lost");
  return damages_.empty();
}

Damage RecordingFile::damage(std::uint64_t offset, std::uint64_t bytes, std::string why) {
  damages_.push_back({head_.file, offset, bytes, std::move(why)});
  return damages_.back();
}

std::string RecordingFile::lost_streams(const ChunkPlace& place) const {
  std::string text;
  std::size_t named = 0;
  for (const std::uint16_t channel : place.channels) {
    const auto meta = channels_.find(channel);
    if (meta == channels_.end()) continue;
    if (++named > most_named) return text + ", ... are lost";
    text += (named == 1 ? ": slices of streams " : ", ") + std::to_string(meta->second.number);
  }
  return named == 0 ? text : text + " are lost";
}

}  // namespace millrace::recording
