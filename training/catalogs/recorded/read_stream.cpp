// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/recorded/read_stream.h"

#include <algorithm>

namespace millrace::training {
namespace {

using recording::RecordedStream;
using recording::StreamFrames;

// The events that are not `frames` or `end`, nor the `open` with which the client opened it.
std::vector<InnerEvent> inner_events(const StreamFrames& stream) {
  std::vector<InnerEvent> events;
  for (const recording::RecordedEvent& placed : stream.events()) {
    const Event::Kind kind = placed.event.kind;
    const bool begins = &placed == &stream.events().front() && !placed.event.opened_anew();
    if (begins || kind == Event::Kind::frames || kind == Event::Kind::end ||
        placed.event.has_text())
      continue;
    events.push_back({.event = placed.event, .frame = placed.frame});
  }
  return events;
}

IndexedPart indexed(recording::Recordings& recordings, const RecordedStream& part,
                    const StreamFrames& stream) {
  IndexedPart one{.number = part.meta.number,
                  .first_file = part.first_file,
                  .last_file = part.last_file,
                  .frames = StreamFrames(recordings, part).frames()};
  const auto counted =
      std::ranges::find(stream.parts(), one.number, &StreamFrames::PartFrames::number);
  if (counted == stream.parts().end()) return one;  // no row of it counts
  one.counted = counted->all;
  one.once = counted->once;
  return one;
}

}  // namespace

ReadStream::ReadStream(const RecordedStream& first)
    : facts{.frames = first.frames,
            .name = first.meta.name,
            .meta = first.meta.options,
            .place = first.meta.number,
            .before = first.first_file,
            .behind = first.last_file} {}

ReadStream read_stream(recording::Recordings& recordings, const recording::StreamParts& parts) {
  const StreamFrames frames(recordings, parts, recording::Repeated::kept);
  ReadStream stream(parts.front());
  stream.facts.frames = frames.frames();
  stream.events = inner_events(frames);
  if (parts.size() == 1) return stream;
  for (const RecordedStream& part : parts)
    stream.parts.push_back(indexed(recordings, part, frames));
  return stream;
}

std::vector<IndexedPart> parts_of(const Index& index, std::uint64_t stream) {
  auto parts = index.parts(stream);
  if (!parts.empty()) return parts;
  const IndexedStream one = index.stream(stream);
  return {{.number = one.place,
           .first_file = one.before,
           .last_file = one.behind,
           .frames = one.frames,
           .counted = one.frames,
           .once = one.frames}};
}

}  // namespace millrace::training
