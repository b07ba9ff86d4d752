// SPDX-License-Identifier: Apache-2.0
#include "recording/reader/stream_parts.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace millrace::recording {

std::vector<StreamParts> join_parts(const std::vector<RecordedStream>& streams) {
  std::vector<StreamParts> joined;
  std::map<StreamKey, std::size_t> known;
  for (const RecordedStream& stream : streams) {
    if (stream.meta.resumable && stream.has_open) {
      const auto [at, is_new] = known.emplace(stream.meta.resumable->stream, joined.size());
      if (!is_new && joined[at->second].front().meta.frames == stream.meta.frames) {
        joined[at->second].push_back(stream);
        continue;
      }
    }
    joined.push_back({stream});
  }
  // Two services may have opened it with the same token: the clock decides then.
  const auto place = [](const RecordedStream& part) {
    return std::tuple(part.meta.resumable->epoch, part.meta.opened_wall, part.meta.number);
  };
  for (StreamParts& parts : joined)
    if (parts.size() > 1) std::ranges::sort(parts, {}, place);
  return joined;
}

RecordedStream summary_of(const StreamParts& parts) {
  RecordedStream all = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const RecordedStream& part = parts[i];
    const bool continues = parts[i - 1].unbroken && parts[i - 1].end >= part.begin;
    all.whole = (i == 1 || all.whole) && continues;
    all.frames += part.frames;
  }
  const RecordedStream& last = parts.back();
  if (parts.size() > 1) all.whole = all.whole && last.whole;
  all.end = last.end;
  all.open = last.open;
  return all;
}

}  // namespace millrace::recording
