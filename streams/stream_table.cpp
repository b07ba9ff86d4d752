// SPDX-License-Identifier: Apache-2.0
#include "streams/stream_table.h"

#include <utility>

namespace millrace {

namespace {

constexpr std::size_t idle_bytes = 16 * 1024;  // about the memory of an idle stream

}  // namespace

Stream& StreamTable::add(std::unique_ptr<Stream> stream) {
  return *streams_.emplace(stream->settings().id, std::move(stream)).first->second;
}

void StreamTable::reap(const Stream& stream) {
  if (!stream.finished() || stream.connected()) return;
  streams_.erase(stream.settings().id);
  if (streams_.empty()) when_empty_();
}

std::vector<StreamId> StreamTable::without_goaway() const {
  std::vector<StreamId> streams;
  for (const auto& [id, stream] : streams_)
    if (!stream->has_goaway()) streams.push_back(id);
  return streams;
}

void StreamTable::deliver(std::span<Returned> returned) {
  const Time now = Clock::now();
  for (Returned& one : returned) {
    const auto found = streams_.find(one.stream);
    if (found == streams_.end()) continue;  // it was dropped while this was on its way
    Stream& stream = *found->second;
    if (auto* done = std::get_if<RowDone>(&one.what))
      stream.done(std::move(*done), now);
    else if (const auto* batched = std::get_if<RowBatched>(&one.what))
      stream.batched(batched->seq, now);
    else if (auto* message = std::get_if<WorkerMessage>(&one.what))
      stream.message(std::move(*message), now);
    else
      stream.dropped(std::get<StreamDropped>(one.what).code, now);
    if (stream.finished()) reap(stream);
  }
}

Stream* StreamTable::largest() const {
  Stream* largest = nullptr;
  std::size_t most = idle_bytes;
  for (const auto& [id, stream] : streams_) {
    const std::size_t held = stream->reclaimable();
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
