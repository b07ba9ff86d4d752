// SPDX-License-Identifier: Apache-2.0
#include "recording/reader/stream_reader.h"

#include <algorithm>
#include <utility>

#include "recording/reader/event_join.h"
#include "recording/reader/slice_source.h"

namespace millrace::recording {

struct StreamReader::Impl {
  Impl(Recordings& from, const RecordedStream& of)
      : recordings(from), stream(of), source(from, of), join(of.meta.frames.bytes()) {}

  bool add_slice();
  void finish();

  Recordings& recordings;
  RecordedStream stream;
  SliceSource source;
  EventJoin join;
};

// False: there is no further slice now.
bool StreamReader::Impl::add_slice() {
  const auto found = source.next();
  if (!found) return false;
  const std::string why = source.why_missing(join.position() == 0 ? "deleted" : "not found");
  if (join.add(found->number, found->slice, why) == EventJoin::Added::contradicts)
    source.reject();
  else
    source.accept();
  return true;
}

void StreamReader::Impl::finish() {
  // The stream may have grown since it was found.
  const auto now = recordings.find(stream.meta.number);
  const std::uint64_t end = std::max(stream.end, now ? now->end : 0);
  join.finish(end, source.why_missing("no end: the recorder stopped"));
}

StreamReader::StreamReader(Recordings& recordings, const RecordedStream& stream)
    : impl_(std::make_unique<Impl>(recordings, stream)) {}
StreamReader::StreamReader(StreamReader&&) noexcept = default;
StreamReader::~StreamReader() = default;

const RecordedStream& StreamReader::stream() const { return impl_->stream; }

std::optional<ReadItem> StreamReader::next() {
  for (;;) {
    if (auto item = impl_->join.next()) return item;
    if (over()) return std::nullopt;
    if (impl_->add_slice()) continue;
    if (impl_->source.live()) return std::nullopt;
    impl_->finish();
  }
}

bool StreamReader::over() const { return impl_->join.over(); }

const std::vector<MissingPart>& StreamReader::missing() const { return impl_->join.missing(); }

}  // namespace millrace::recording
