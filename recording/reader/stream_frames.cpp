// SPDX-License-Identifier: Apache-2.0
#include "recording/reader/stream_frames.h"

#include <algorithm>

namespace millrace::recording {

using Kind = Event::Kind;

StreamFrames::StreamFrames(Recordings& recordings, const StreamParts& parts, Repeated repeated)
    : reader_(recordings, parts),
      repeated_(repeated),
      frame_bytes_(parts.front().meta.frames.bytes()) {
  read_on();
}

bool StreamFrames::read_on() {
  bool any = false;
  while (const auto item = reader_.next()) {
    any = true;
    if (const auto* read = std::get_if<RecordedEvent>(&*item)) add(*read);
    if (const auto* totals = std::get_if<StreamTotals>(&*item)) totals_ = *totals;
  }
  return any;
}

void StreamFrames::add(RecordedEvent read) {
  count(read);
  if (repeated_ == Repeated::left_out && !reader_.counts_once(read)) return;
  const Event& event = read.event;
  read.frame = frames_;
  const bool more = event.kind == Kind::frames && !events_.empty() &&
                    events_.back().event.kind == Kind::frames &&
                    events_.back().event.cause == event.cause;
  if (more) {
    events_.back().event.count += event.count;
  } else {
    events_.push_back(read);
    events_.back().frames = {};
  }
  if (event.kind != Kind::frames || event.count == 0) return;

  const bool adjacent =
      !pieces_.empty() &&
      pieces_.back().bytes.data() + pieces_.back().bytes.size() == read.frames.data();
  if (adjacent)
    pieces_.back().bytes = {pieces_.back().bytes.data(),
                            pieces_.back().bytes.size() + read.frames.size()};
  else
    pieces_.push_back({.begin = frames_, .bytes = read.frames});
  frames_ += event.count;
}

void StreamFrames::count(const RecordedEvent& read) {
  if (read.event.kind == Kind::open) parts_.push_back({.number = reader_.part().meta.number});
  if (read.event.kind != Kind::frames) return;
  RecordedEvent once = read;
  if (reader_.counts_once(once)) parts_.back().once += once.event.count;
  parts_.back().all += read.event.count;
}

Bytes StreamFrames::read(std::uint64_t begin, std::uint64_t end,
                         std::vector<std::byte>& into) const {
  if (begin == end) return {};
  auto piece = std::ranges::upper_bound(pieces_, begin, {}, &Piece::begin) - 1;
  const auto part = [&](std::uint64_t from) {
    const std::size_t skip = (from - piece->begin) * frame_bytes_;
    const std::size_t wanted = (end - from) * frame_bytes_;
    return piece->bytes.subspan(skip, std::min(wanted, piece->bytes.size() - skip));
  };
  const Bytes first = part(begin);
  if (first.size() == (end - begin) * frame_bytes_) return first;
  into.assign(first.begin(), first.end());
  while (into.size() < (end - begin) * frame_bytes_) {
    ++piece;
    const Bytes next = part(piece->begin);
    into.insert(into.end(), next.begin(), next.end());
  }
  return into;
}

}  // namespace millrace::recording
