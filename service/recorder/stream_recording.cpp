// SPDX-License-Identifier: Apache-2.0
#include "service/recorder/stream_recording.h"

#include <span>
#include <utility>

namespace millrace {

StreamRecording::StreamRecording(recording::PageWriter& pages,
                                 std::unique_ptr<recording::StreamMeta> meta, bool answers)
    : pages_(pages), answers_(answers), holds_(meta->resumable.has_value()) {
  pen_ = std::make_unique<recording::StreamPen>(pages, std::move(meta));
}

void StreamRecording::event(const Event& event, Time arrived, const std::array<Bytes, 2>& frames) {
  if (holds_ && hold(event, arrived)) return;
  pen_->event(event, arrived, frames);
}

// False: something was received, and the events before it are written.
bool StreamRecording::hold(const Event& event, Time arrived) {
  const Event::Kind kind = event.kind;
  if (kind == Event::Kind::abort) return true;
  const bool decided = kind == Event::Kind::open || kind == Event::Kind::size;
  if (decided && held_events_ < held_.size()) {
    held_[held_events_++] = {event, arrived};
    return true;
  }
  holds_ = false;
  for (const Held& held : std::span(held_).first(held_events_))
    pen_->event(held.event, held.arrived, {});
  return false;
}

void StreamRecording::answered(std::uint64_t seq, BatchId batch, const Answer& answer) {
  if (answers_ && !holds_) pen_->answer(seq, batch, answer);
}

void StreamRecording::message(std::uint64_t number, std::uint64_t seq, const Answer& message) {
  if (answers_ && !holds_) pen_->message(number, seq, message);
}

// If there is no page for the last record, the thread writes it later.
void StreamRecording::closed(StreamClosing why, bool ended) {
  if (holds_) return;
  pen_->close({.rows = digest_.rows(),
               .digest = digest_.value(),
               .closing = static_cast<std::uint8_t>(why),
               .complete = ended});
  if (!pen_->finish()) pages_.finish_later(std::move(pen_));
}

}  // namespace millrace
