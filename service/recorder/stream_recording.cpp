// SPDX-License-Identifier: Apache-2.0
#include "service/recorder/stream_recording.h"

#include <utility>

namespace millrace {

StreamRecording::StreamRecording(recording::PageWriter& pages,
                                 std::unique_ptr<recording::StreamMeta> meta, bool answers)
    : pages_(pages),
      pen_(std::make_unique<recording::StreamPen>(pages, std::move(meta))),
      answers_(answers) {}

void StreamRecording::event(const Event& event, Time arrived, const std::array<Bytes, 2>& frames) {
  pen_->event(event, arrived, frames);
}

void StreamRecording::answered(std::uint64_t seq, BatchId batch, const Answer& answer) {
  if (answers_) pen_->answer(seq, batch, answer);
}

void StreamRecording::message(std::uint64_t number, std::uint64_t seq, const Answer& message) {
  if (answers_) pen_->message(number, seq, message);
}

// If there is no page for the last record, the thread writes it later.
void StreamRecording::closed(StreamClosing why, bool ended) {
  pen_->close({.rows = digest_.rows(),
               .digest = digest_.value(),
               .closing = static_cast<std::uint8_t>(why),
               .complete = ended});
  if (!pen_->finish()) pages_.finish_later(std::move(pen_));
}

}  // namespace millrace
