// SPDX-License-Identifier: Apache-2.0
#include "recording/reader/stream_reader.h"

#include <algorithm>
#include <limits>

namespace millrace::recording {

StreamReader::StreamReader(Recordings& recordings, const RecordedStream& stream)
    : recordings_(&recordings),
      stream_(stream),
      run_(recordings.run_of(stream.last_file)),
      numbers_(recordings.files_of(stream)),
      changes_(recordings.changes()),
      join_(stream.meta.frames.bytes()) {}

std::optional<RecordedItem> StreamReader::next() {
  for (;;) {
    if (auto item = join_.next()) return item;
    if (over()) return std::nullopt;
    if (const SliceMessage* message = next_message()) {
      add_slice(*message);
    } else {
      const bool live = !run_.empty() && run_ == recordings_->live_run();
      if (live) return std::nullopt;
      finish();
    }
  }
}

// The next message of the stream, in the order of the files. Null: this was the last one, or the
// last one that is written. A message comes again if its file was replaced.
const SliceMessage* StreamReader::next_message() {
  for (;;) {
    if (next_message_ < messages_.size()) return &messages_[next_message_++];
    if (file_ && next_chunk_ < file_->chunks_of(channel_).size())
      read_chunk();
    else if (!reopen() && !open_next_file())
      return nullptr;
  }
}

void StreamReader::add_slice(const SliceMessage& message) {
  Bytes bytes = message.bytes;
  // The decoder would copy it to memory that the next message uses.
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % 8 != 0)
    bytes = copies_.emplace_back(bytes.begin(), bytes.end());
  const auto slice = decoder_.slice(bytes, stream_.meta.number, stream_.meta.frames.bytes());
  if (!slice) return reject();
  const std::string why = why_missing(join_.position() == 0 ? "deleted" : "not found");
  if (join_.add(message.number, *slice, why) == EventJoin::Added::contradicts) return reject();
  damage_.clear();
}

void StreamReader::finish() {
  // The stream may have grown since it was found.
  const auto now = stream_.open ? recordings_->find(stream_.meta.number) : std::nullopt;
  const std::uint64_t end = std::max(stream_.end, now ? now->end : 0);
  join_.finish(end, why_missing("no end: the recorder stopped"));
}

// The file was replaced by one that may have more: it was repaired, or sealed without other
// streams.
bool StreamReader::reopen() {
  if (!file_) return false;
  notice_damage(std::numeric_limits<std::uint64_t>::max());
  const auto current = recordings_->file(number_);
  if (!current || *current == file_) return false;
  file_ = nullptr;
  next_number_ = static_cast<std::size_t>(std::ranges::find(numbers_, number_) - numbers_.begin());
  return open_next_file();
}

bool StreamReader::open_next_file() {
  if (next_number_ == numbers_.size() && changes_ != recordings_->changes()) {
    changes_ = recordings_->changes();
    const FileNumber last = numbers_.empty() ? 0 : numbers_.back();
    for (const FileNumber number : recordings_->files_of(stream_))
      if (number > last) numbers_.push_back(number);
  }
  while (next_number_ < numbers_.size()) {
    const FileNumber number = numbers_[next_number_];
    const auto opened = recordings_->file(number);
    ++next_number_;  // not before: if the file cannot be opened now, the next call tries it again
    if (!opened) damage_ = opened.error();
    const auto channel = opened ? (*opened)->channel_of(stream_.meta.number) : std::nullopt;
    if (!channel) continue;
    file_ = *opened;
    number_ = number;
    channel_ = *channel;
    next_chunk_ = 0;
    looked_until_ = 0;
    files_.push_back(file_);
    return true;
  }
  return false;
}

void StreamReader::read_chunk() {
  messages_.clear();
  next_message_ = 0;
  const std::size_t chunk = file_->chunks_of(channel_)[next_chunk_++];
  const auto* messages = file_->kept_messages(chunk);
  const ChunkPlace& place = file_->chunks()[chunk];
  notice_damage(place.offset + place.bytes);
  if (!messages) return;
  for (const SliceMessage& message : *messages)
    if (message.channel == channel_) messages_.push_back(message);
}

// Looks for damage of the file up to this offset.
void StreamReader::notice_damage(std::uint64_t to) {
  for (const Damage& damage : file_->damages())
    if (damage.offset >= looked_until_ && damage.offset < to) reject();
  looked_until_ = to;
}

// The slice is not used: its events are missing.
void StreamReader::reject() { damage_ = "damaged: file " + std::to_string(number_); }

std::string StreamReader::why_missing(const std::string& otherwise) const {
  return damage_.empty() ? otherwise : damage_;
}

}  // namespace millrace::recording
