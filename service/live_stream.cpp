// SPDX-License-Identifier: Apache-2.0
#include "service/live_stream.h"

#include <chrono>
#include <utility>

namespace millrace {

namespace {

// The service or its workers could not serve the stream, whatever its client did.
constexpr bool is_of_service(ErrorCode code) {
  return code == ErrorCode::no_worker || code == ErrorCode::no_room ||
         code == ErrorCode::worker_failed || code == ErrorCode::internal;
}

}  // namespace

LiveStream::LiveStream(const StreamSettings& settings, std::string name, Share connection,
                       const Place& place, ClientOutbox& outbox)
    : id_(settings.id),
      name_(std::move(name)),
      opened_(settings.opened),
      connection_(std::move(connection)),
      place_(place),
      outbox_(&outbox),
      stream_(settings, {place.rows, *this, place.blocks, place.stats}) {}

void LiveStream::goaway() {
  if (outbox_ && !std::exchange(has_goaway_, true))
    outbox_->goaway(place_.retry_times.of_leaving());
}

void LiveStream::drain(Time now) {
  if (std::exchange(draining_, true)) return;
  goaway();
  stream_.drain(now);
}

std::size_t LiveStream::held() const {
  return stream_.reclaimable() + (outbox_ ? outbox_->reclaimable() : 0);
}

void LiveStream::evict(Time now) {
  if (outbox_) outbox_->drop_untaken();
  stream_.evict(ErrorCode::no_room, "the service is short of memory; this stream held the most",
                now);
}

void LiveStream::lost(Time now) {
  if (stream_.client_listens())
    place_.log.info("stream aborted",
                    {{"pipeline", pipeline().name()}, {"stream", name_}, {"why", "client gone"}},
                    now);
  stream_.lost(now);
}

void LiveStream::disconnect() { outbox_ = nullptr; }

void LiveStream::result(StreamResult result) {
  if (!outbox_) return;
  const ResultHead head{.seq = result.row.seq,
                        .begin = result.row.begin,
                        .end = result.row.end(),
                        .rate = place_.pipeline.options().frames.rate,
                        .flags = result.row.flags,
                        .explanation = result.explanation};
  outbox_->result(head, result.answer);
}

void LiveStream::flushed(std::uint64_t mark) {
  if (outbox_) outbox_->flushed(mark);
}

void LiveStream::rejected(ErrorCode code, std::string_view message, std::uint64_t frames) {
  if (outbox_) outbox_->rejected(code, message, frames);
}

void LiveStream::warning(ErrorCode code, std::string_view message) {
  place_.log.warning("stream sends wrong values",
                     {{"pipeline", pipeline().name()}, {"stream", name_}, {"why", message}});
  if (outbox_) outbox_->warning(code, message);
}

void LiveStream::error(ErrorCode code, std::string_view message) {
  const auto write = is_of_service(code) ? &Log::warning : &Log::info;
  (place_.log.*write)("stream ended",
                      {{"pipeline", pipeline().name()},
                       {"stream", name_},
                       {"code", name_of(code)},
                       {"why", message}},
                      Clock::now());
  if (outbox_) outbox_->error(code, message);
}

void LiveStream::closed(std::uint64_t frames, std::uint64_t chunks) {
  if (outbox_) outbox_->closed(frames, chunks, draining_);
}

void LiveStream::resume() {
  if (outbox_) outbox_->resume();
}

void LiveStream::has_room() {
  if (outbox_) outbox_->has_room();
}

}  // namespace millrace
