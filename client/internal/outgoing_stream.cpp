// SPDX-License-Identifier: Apache-2.0
#include "client/internal/outgoing_stream.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace millrace {
namespace {

namespace cp = client_protocol;

std::optional<std::string_view> non_empty(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional<std::string_view>(text);
}

}  // namespace

OutgoingStream::OutgoingStream(StreamPipe& pipe, StreamRequest request, const std::string& token)
    : pipe_(pipe), number_(pipe.number()), request_(std::move(request)), token_(token) {}

Bytes OutgoingStream::next(cp::Encoder& encoder) {
  next_ = {};
  switch (stage_) {
    case Stage::closed: return open_message(encoder);
    case Stage::open: return queued_message(encoder);
    default: return {};
  }
}

Bytes OutgoingStream::open_message(cp::Encoder& encoder) {
  return encoder.encode(cp::Open{.stream = number_,
                                 .pipeline = non_empty(request_.pipeline),
                                 .id = non_empty(request_.id),
                                 .format = request_.format,
                                 .rate = request_.rate,
                                 .channels = request_.channels,
                                 .dim = request_.dim,
                                 .channel = request_.channel,
                                 .chunk = request_.chunk,
                                 .options = non_empty(request_.options),
                                 .record = non_empty(request_.record ? "" : "no"),
                                 .token = non_empty(token_)});
}

void OutgoingStream::open(const cp::Ready& ready) {
  if (stage_ != Stage::opening) return;
  stage_ = Stage::open;
  position_ = ready.frames;
  frame_bytes_ = std::max<std::size_t>(1, ready.frame_bytes);  // 0 for packets
}

Bytes OutgoingStream::queued_message(cp::Encoder& encoder) {
  const bool last = pipe_.abandoned();  // read before the queue: nothing is queued afterwards
  if (pipe_.held_up()) return keepalive_message(encoder);
  while (fetch_queued()) {
    if (const auto* command = std::get_if<ClientMessage>(&queued_[current_])) {
      return command_message(encoder, *command);
    } else if (partial_frame_.size() + remaining().size() >= frame_bytes_) {
      return credit_ > 0 ? frames_message(encoder) : keepalive_message(encoder);
    } else {
      partial_frame_ += remaining();
      finish_entry();
    }
  }
  next_.end = cut_short_ || last;
  return next_.end ? encoder.encode(cp::End{.stream = number_}) : keepalive_message(encoder);
}

bool OutgoingStream::fetch_queued() {
  if (current_ < queued_.size()) return true;
  current_ = 0;
  pipe_.take(queued_);
  return !queued_.empty();
}

// A frame that straddles two entries gets a message of its own: only this frame is copied.
Bytes OutgoingStream::frames_message(cp::Encoder& encoder) {
  if (pipe_.has_packets()) {
    next_ = {.bytes = remaining().size(), .frames = 1};
    return frames_of(encoder, remaining());
  }
  if (!partial_frame_.empty()) {
    next_ = {.bytes = frame_bytes_ - partial_frame_.size(), .frames = 1, .partial = true};
    const std::string whole = partial_frame_ + std::string(remaining().substr(0, next_.bytes));
    return frames_of(encoder, whole);
  }
  const std::uint64_t max_frames = std::max<std::uint64_t>(1, longest_frames / frame_bytes_);
  next_.frames = std::min(
      {static_cast<std::uint64_t>(remaining().size() / frame_bytes_), credit_, max_frames});
  next_.bytes = static_cast<std::size_t>(next_.frames) * frame_bytes_;
  return frames_of(encoder, remaining().substr(0, next_.bytes));
}

Bytes OutgoingStream::command_message(cp::Encoder& encoder, const ClientMessage& command) {
  // The service refuses a partial frame at the end, as over WebSocket.
  if (std::holds_alternative<client_message::End>(command) && !partial_frame_.empty()) {
    next_.partial = true;
    return frames_of(encoder, partial_frame_);
  }
  next_.command = true;
  next_.end = std::holds_alternative<client_message::End>(command);
  if (const auto* flush = std::get_if<client_message::Flush>(&command))
    return encoder.encode(cp::Flush{.stream = number_, .mark = flush->mark});
  if (std::holds_alternative<client_message::Reset>(command))
    return encoder.encode(cp::Reset{.stream = number_});
  if (const auto* gap = std::get_if<client_message::Gap>(&command)) {
    next_.frames = gap->frames;
    return encoder.encode(cp::Gap{.stream = number_, .frames = gap->frames});
  }
  if (std::holds_alternative<client_message::Keepalive>(command)) return frames_of(encoder, "");
  if (const auto* message = std::get_if<client_message::Message>(&command))
    return encoder.encode(cp::Post{.stream = number_, .data = message->data});
  if (const auto* set = std::get_if<client_message::Set>(&command))
    return encoder.encode(cp::SetOptions{.stream = number_, .options = set->options});
  return encoder.encode(cp::End{.stream = number_});
}

// A message without frames needs no credit.
Bytes OutgoingStream::keepalive_message(cp::Encoder& encoder) {
  return keepalive_due_ ? frames_of(encoder, "") : Bytes();
}

Bytes OutgoingStream::frames_of(cp::Encoder& encoder, std::string_view bytes) {
  return encoder.encode(cp::Frames{.stream = number_, .at = position_, .bytes = bytes_in(bytes)});
}

void OutgoingStream::sent() {
  idle_ = keepalive_due_ = false;
  if (stage_ == Stage::closed) {
    stage_ = Stage::opening;
    return;
  }
  position_ += next_.frames;
  if (next_.end) stage_ = Stage::ended;
  if (next_.command) return finish_entry();
  if (next_.partial) partial_frame_.clear();
  credit_ -= next_.frames;
  offset_ += next_.bytes;
  if (next_.bytes > 0 && remaining().empty()) finish_entry();
}

bool OutgoingStream::check_idle() {
  keepalive_due_ = std::exchange(idle_, true) && stage_ == Stage::open;
  return keepalive_due_;
}

void OutgoingStream::cut_short() {
  current_ = offset_ = 0;
  partial_frame_.clear();
  queued_.clear();
  cut_short_ = true;
  if (stage_ == Stage::closed) stage_ = Stage::ended;
  if (stage_ == Stage::opening) stage_ = Stage::open;
}

std::string_view OutgoingStream::remaining() const {
  return std::string_view(std::get<std::string>(queued_[current_])).substr(offset_);
}

void OutgoingStream::finish_entry() {
  pipe_.sent(queued_[current_]);
  ++current_;
  offset_ = 0;
}

}  // namespace millrace
