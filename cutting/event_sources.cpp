// SPDX-License-Identifier: Apache-2.0
#include "cutting/event_sources.h"

#include <limits>

namespace millrace {

EventSources::EventSources(const Settings& settings, CutStats& stats, std::uint32_t& chosen_size)
    : chunk_(settings.chunk), stats_(stats) {
  if (!chunk_.sizes.sizes.empty())
    sizes_.emplace(chunk_, Decisions{.stream = settings.stream,
                                     .frames = settings.frames,
                                     .requested_size = settings.requested_size,
                                     .max_wait = settings.max_wait,
                                     .stats = &stats,
                                     .chosen_size = &chosen_size});
  if (settings.endpoint) endpoints_.emplace(*settings.endpoint, settings.frames, &stats);
}

std::optional<Event> EventSources::endpoint() {
  return endpoints_ ? endpoints_->next() : std::nullopt;
}

std::optional<Event> EventSources::size(Duration waited) {
  return sizes_ ? sizes_->next(progress_.first_of_run(), waited) : std::nullopt;
}

std::uint64_t EventSources::frames_until_next() const {
  return endpoints_ ? endpoints_->frames_until_next(progress_.frames())
                    : std::numeric_limits<std::uint64_t>::max();
}

void EventSources::added(const Event& event, const std::array<Bytes, 2>& frames) {
  begin(progress_.added(event));
  if (endpoints_ && event.kind == Event::Kind::frames) endpoints_->on_frames(frames, progress_.frames());
}

void EventSources::cut(const Row& row) {
  if (sizes_ && row.has_frames()) sizes_->on_row(row);
  if (endpoints_ && row.is(flag::last)) endpoints_->on_last_row(row.seq);
  begin(progress_.cut(row));
}

void EventSources::begin(SegmentProgress::Began what) {
  if (what == SegmentProgress::Began::nothing) return;
  if (sizes_) sizes_->on_segment();
  if (endpoints_) endpoints_->on_begin(what == SegmentProgress::Began::run);
}

void EventSources::on_worker_endpoint(std::uint64_t seq) {
  if (endpoints_)
    endpoints_->on_worker_endpoint(seq);
  else
    stats_.endpoints_late.add();
}

}  // namespace millrace
