// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/recorded/recorded_frames.h"

#include <algorithm>
#include <utility>

namespace millrace::training {

using recording::StreamFrames;

RecordedFrames::RecordedFrames(recording::Recordings& recordings, const FrameType& type,
                               std::span<const IndexedPart> parts) {
  for (const IndexedPart& part : parts) {
    if (part.counted == 0 && parts.size() > 1) continue;
    const recording::RecordedStream recorded{.meta = {.number = part.number, .frames = type},
                                             .frames = part.frames,
                                             .first_file = part.first_file,
                                             .last_file = part.last_file};
    if (recordings.is_removed(part.number) || recordings.files_of(recorded).empty()) {
      fault_ = {part.number, "was deleted", true};
      return;
    }
    auto frames = std::make_unique<StreamFrames>(recordings, recorded);
    if (frames->frames() != part.frames) {
      // "damaged: file 3", or empty.
      const auto missing = frames->missing();
      const std::string why = missing.empty() ? "" : missing.front().why;
      const bool unreadable = frames->frames() == 0 && !why.empty();
      fault_ = {part.number,
                unreadable
                    ? why
                    : "has " + std::to_string(frames->frames()) + " of " +
                          std::to_string(part.frames) + " frames" + (why.empty() ? "" : ": " + why),
                unreadable};
      return;
    }
    const std::uint64_t begin = parts_.empty() ? 0 : parts_.back().end;
    parts_.push_back({std::move(frames), begin, begin + part.counted});
  }
}

Bytes RecordedFrames::read(std::uint64_t begin, std::uint64_t count) {
  if (count == 0) return {};
  auto part = std::ranges::upper_bound(parts_, begin, {}, &Part::begin) - 1;
  const std::uint64_t end = begin + count;
  const auto some = [&](std::uint64_t until) {
    return part->frames->read(begin - part->begin, until - part->begin, slices_);
  };
  if (end <= part->end) return some(end);
  copy_.clear();
  for (; begin < end; ++part) {
    const std::uint64_t until = std::min(end, part->end);
    const Bytes bytes = some(until);
    copy_.insert(copy_.end(), bytes.begin(), bytes.end());
    begin = until;
  }
  return copy_;
}

std::size_t RecordedFrames::memory() const {
  std::size_t bytes = slices_.capacity() + copy_.capacity();
  for (const Part& part : parts_)
    bytes += sizeof(recording::RecordedEvent) * part.frames->events().size();
  return bytes;
}

}  // namespace millrace::training
