// SPDX-License-Identifier: Apache-2.0
#include "service/stream_table.h"

#include <utility>

namespace millrace {

namespace {

// Bytes: what a stream is without any.
constexpr std::size_t next_to_nothing = 16 * 1024;

}  // namespace

LiveStream& StreamTable::add(std::unique_ptr<LiveStream> stream) {
  return *streams_.emplace(stream->id(), std::move(stream)).first->second;
}

void StreamTable::reap(StreamId id) {
  const auto stream = streams_.find(id);
  if (stream == streams_.end()) return;
  if (!stream->second->stream().finished() || stream->second->attached()) return;
  streams_.erase(stream);
  if (streams_.empty()) when_empty_();
}

std::vector<StreamId> StreamTable::without_goaway() const {
  std::vector<StreamId> streams;
  for (const auto& [id, stream] : streams_)
    if (!stream->has_goaway()) streams.push_back(id);
  return streams;
}

void StreamTable::take(std::vector<Returned>& returned) {
  const Time now = Clock::now();
  for (Returned& one : returned) {
    const auto found = streams_.find(one.stream);
    if (found == streams_.end()) continue;  // it was dropped, and what was under way came behind
    Stream& stream = found->second->stream();
    switch (one.what) {
      case Returned::What::taken: stream.taken(1, now); break;
      case Returned::What::done: {
        stream.done({.seq = one.seq,
                     .answer = std::move(one.answer),
                     .at = one.at,
                     .place = one.place,
                     .flags = one.flags,
                     .reason = one.reason},
                    now);
        break;
      }
      case Returned::What::dropped: stream.dropped(one.code, now); break;
    }
    if (stream.finished()) reap(one.stream);
  }
}

LiveStream* StreamTable::largest() const {
  LiveStream* largest = nullptr;
  std::size_t most = next_to_nothing;
  for (const auto& [id, stream] : streams_) {
    const std::size_t held = stream->held();
    if (held <= most) continue;
    most = held;
    largest = stream.get();
  }
  return largest;
}

void StreamTable::drain(Time now) {
  for (auto& [id, stream] : streams_) stream->drain(now);
}

}  // namespace millrace
