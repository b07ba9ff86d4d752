// SPDX-License-Identifier: Apache-2.0
#include "transport/sessions/conversation.h"

#include <cassert>
#include <utility>

namespace millrace {

void Conversation::fail(ErrorCode code, std::string_view message, Time now) {
  if (over_) release_stream();
  if (stream_) stream_->fail(code, message, now);  // calls error(), unless the stream has failed
  if (!queue_.closing() && !over_) error(code, message);
  if (!queue_.closing()) queue_.close(code);
}

void Conversation::drain(Time now) {
  if (stream_ && !over_ && !stream_->outlives_connection())
    stream_->drain(now);
  else
    queue_.close(true);
}

void Conversation::written(Time now) {
  if (over_) return release_stream();
  const std::size_t results = queue_.take_sent_results();
  if (stream_) stream_->written(results, now);
}

void Conversation::disconnected(ConnectionEnd how, Time now) {
  if (stream_) stream_->disconnected(how, now);
  stream_.reset();
}

std::optional<RequestError> Conversation::open(StreamAdmission& admission, StreamRequest request) {
  if (over_) release_stream();
  assert(!stream_);
  auto opened = admission.open(std::move(request), client_, *this);
  if (!opened) return std::move(opened.error());
  stream_ = std::move(*opened);
  queue_.scope().stats().messages[MessageType::open].add();
  return std::nullopt;
}

void Conversation::end_stream(Time now) {
  is_ending_ = true;
  stream_->end(now);
}

void Conversation::stream_is_over() {
  over_ = true;
  if (std::exchange(is_ending_, false)) queue_.to_read().notify();
}

void Conversation::release_stream() {
  over_ = false;
  queue_.unmark_results();
  stream_.reset();
}

}  // namespace millrace
