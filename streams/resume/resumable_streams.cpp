// SPDX-License-Identifier: Apache-2.0
#include "streams/resume/resumable_streams.h"

#include <cassert>
#include <utility>

namespace millrace {

ResumableStreams::~ResumableStreams() { drain(); }

ResumableStream& ResumableStreams::add(std::unique_ptr<ResumableStream> stream) {
  ResumableStream& added = *stream;
  streams_.emplace(added.key(), std::move(stream));
  return added;
}

ResumableStream* ResumableStreams::find(const StreamKey& key) const {
  const auto found = streams_.find(key);
  return found == streams_.end() ? nullptr : found->second.get();
}

ResumableStream* ResumableStreams::claim(const StreamKey& key) {
  ResumableStream* stream = find(key);
  if (!stream || !stream->detached_since() || waiting_.remove(entry_of(*stream))) return stream;
  remove(*stream);
  return nullptr;
}

void ResumableStreams::sweep(Time now) {
  while (!detached_.empty() && now - detached_.begin()->first.first >= window_)
    remove(*detached_.begin()->second);
  for (const auto& [since, stream] : detached_)
    if (!stream->stream().has_slot()) waiting_.free_slot(entry_of(*stream));
}

void ResumableStreams::end_waiting(const DetachedList::Entry& entry) {
  ResumableStream* stream = find(entry.key);
  if (stream && stream->detached_since() == entry.since) remove(*stream);
}

ResumableStream* ResumableStreams::oldest_over() const {
  for (const auto& [since, stream] : detached_)
    if (stream->is_over()) return stream;
  return nullptr;
}

void ResumableStreams::drain() {
  draining_ = true;
  while (!detached_.empty()) remove(*detached_.begin()->second);
}

bool ResumableStreams::keeps(ResumableStream& stream, Time now) {
  if (draining_) return false;
  detached_.emplace(std::pair(now, stream.key()), &stream);
  waiting_.add({.pipeline = stream.stream().settings().pipeline,
                .since = now,
                .key = stream.key(),
                .thread = thread_},
               stream.stream().has_slot());
  stream.stream().set_detached(true, now);
  return true;
}

void ResumableStreams::returned(ResumableStream& stream) {
  detached_.erase(std::pair(*stream.detached_since(), stream.key()));
  waiting_.remove(entry_of(stream));
  stream.stream().set_detached(false, {});
}

void ResumableStreams::remove(ResumableStream& stream) {
  if (stream.detached_since()) returned(stream);
  streams_.erase(stream.key());
}

DetachedList::Entry ResumableStreams::entry_of(const ResumableStream& stream) const {
  return {.pipeline = stream.stream().settings().pipeline,
          .since = *stream.detached_since(),
          .key = stream.key(),
          .thread = thread_};
}

}  // namespace millrace
