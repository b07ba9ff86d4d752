// SPDX-License-Identifier: Apache-2.0
#include "recording/reader/slice_source.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

namespace millrace::recording {
namespace {

bool within(Bytes part, Bytes whole) {
  const std::less_equal<const std::byte*> before;
  return before(whole.data(), part.data()) &&
         before(part.data() + part.size(), whole.data() + whole.size());
}

}  // namespace

SliceSource::SliceSource(Recordings& recordings, const RecordedStream& stream)
    : recordings_(&recordings),
      stream_(stream),
      run_(recordings.run_of(stream.last_file)),
      numbers_(recordings.files_of(stream)),
      changes_(recordings.changes()) {}

bool SliceSource::live() const { return !run_.empty() && run_ == recordings_->live_run(); }

std::optional<SliceSource::Found> SliceSource::next() {
  for (;;) {
    if (next_message_ < messages_.size()) {
      if (auto found = decode(messages_[next_message_++])) return found;
    } else if (file_ && next_chunk_ < file_->chunks_of(channel_).size()) {
      read_chunk();
    } else if (!reopen() && !open_next_file()) {
      return std::nullopt;
    }
  }
}

// The file was replaced by one that may have more: it was repaired, or sealed without other
// streams.
bool SliceSource::reopen() {
  if (!file_) return false;
  notice_damage(std::numeric_limits<std::uint64_t>::max());
  const auto current = recordings_->file(number_);
  if (!current || *current == file_) return false;
  file_ = nullptr;
  next_number_ = static_cast<std::size_t>(std::ranges::find(numbers_, number_) - numbers_.begin());
  return open_next_file();
}

bool SliceSource::open_next_file() {
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

void SliceSource::read_chunk() {
  messages_.clear();
  next_message_ = 0;
  const std::size_t chunk = file_->chunks_of(channel_)[next_chunk_++];
  const auto* messages = file_->messages(chunk);
  const ChunkPlace& place = file_->file.chunks()[chunk];
  notice_damage(place.offset + place.bytes);
  if (!messages) return;
  for (const SliceMessage& message : *messages)
    if (message.channel == channel_) messages_.push_back(message);
}

// Looks for damage of the file up to this offset.
void SliceSource::notice_damage(std::uint64_t to) {
  for (const Damage& damage : file_->file.damages())
    if (damage.offset >= looked_until_ && damage.offset < to) reject();
  looked_until_ = to;
}

std::optional<SliceSource::Found> SliceSource::decode(const SliceMessage& message) {
  const auto slice =
      decoder_.slice(message.bytes, stream_.meta.number, stream_.meta.frames.bytes());
  if (!slice) {
    reject();
    return std::nullopt;
  }
  Found found{.number = message.number, .slice = *slice};
  if (!within(slice->frames, message.bytes)) {
    copies_.emplace_back(slice->frames.begin(), slice->frames.end());
    found.slice.frames = copies_.back();
  }
  return found;
}

void SliceSource::reject() { damage_ = "damaged: file " + std::to_string(number_); }

std::string SliceSource::why_missing(const std::string& otherwise) const {
  return damage_.empty() ? otherwise : damage_;
}

}  // namespace millrace::recording
