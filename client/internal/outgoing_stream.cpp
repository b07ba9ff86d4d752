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
std::optional<std::string_view> non_empty(std::string&&) = delete;  // the view would outlive it

}  // namespace

OutgoingStream::OutgoingStream(StreamPipe& pipe, ResumingStream& state, StreamRequest request,
                               const std::string& token)
    : pipe_(pipe),
      state_(state),
      number_(pipe.number()),
      request_(std::move(request)),
      token_(token) {}

Bytes OutgoingStream::next(cp::Encoder& encoder, Time now) {
  next_ = {};
  switch (stage_) {
    case Stage::unopened: return open_message(encoder);
    case Stage::open: break;
    case Stage::ended: return ack_overdue_ ? ack_message(encoder) : Bytes();
    case Stage::finishing: return ack_message(encoder);
    default: return {};
  }
  const Bytes message = input_message(encoder);
  // Right before another message, it costs the service no read of its own.
  const bool ack = message.empty() ? ack_overdue_ : is_ack_due(now);
  return ack ? ack_message(encoder) : message;
}

Bytes OutgoingStream::open_message(cp::Encoder& encoder) {
  cp::Open open{.stream = number_,
                .pipeline = non_empty(request_.pipeline),
                .id = non_empty(request_.id),
                .format = request_.format,
                .rate = request_.rate,
                .channels = request_.channels,
                .dim = request_.dim,
                .channel = request_.channel,
                .chunk = request_.chunk,
                .options = non_empty(request_.options),
                .token = non_empty(token_),
                .resume = request_.resume};
  if (!request_.record) open.record = "no";
  if (const auto& from = request_.resumption) {
    open.resume_token = from->token;
    open.n = from->n;
    open.place = from->point;
    open.have = from->results;
    open.flushed = from->flushed;
    open.set = non_empty(from->set);
  }
  return encoder.encode(open);
}

void OutgoingStream::open(const cp::Ready& ready) {
  stage_ = state_.outgoing().has_ended() ? Stage::ended : Stage::open;
  position_ = ready.frames;
  frame_bytes_ = std::max<std::size_t>(1, ready.frame_bytes);  // 0 for packets
}

void OutgoingStream::request() {
  stage_ = Stage::unopened;
  credit_ = 0;
  partial_frame_.clear();  // the input has it again
  ack_waited_ = ack_overdue_ = false;
  if (!state_.can_resume()) return;
  request_.id = pipe_.name();
  request_.resumption = state_.resumption();
}

void OutgoingStream::request_without_resume() {
  request_.resume = false;
  request();
}

Bytes OutgoingStream::input_message(cp::Encoder& encoder) {
  const bool last = pipe_.abandoned();  // read before the queue: nothing is queued afterwards
  if (pipe_.held_up()) return keepalive_message(encoder);
  while (!cut_short_) {
    const auto next = state_.outgoing().next();
    if (!next) {
      if (state_.outgoing().all_sent() && fetch_queued(last)) continue;
      return keepalive_message(encoder);
    }
    if (next->command) return command_message(encoder, *next->command);
    if (partial_frame_.size() + next->frames.size() >= frame_bytes_)
      return credit_ > 0 ? frames_message(encoder, next->frames) : keepalive_message(encoder);
    partial_frame_ += next->frames;
    use(state_.outgoing().sent());
  }
  next_.end = true;
  return encoder.encode(cp::End{.stream = number_});
}

// A stream that the user has closed ends after its input.
bool OutgoingStream::fetch_queued(bool last) {
  pipe_.take(queued_);
  const bool end = queued_.empty() && last && !end_queued_;
  if (end) queued_.emplace_back(client_message::End{});
  const bool any = !queued_.empty();
  for (auto& entry : queued_) {
    const auto* command = std::get_if<ClientMessage>(&entry);
    end_queued_ |= command && std::holds_alternative<client_message::End>(*command);
    state_.outgoing().add(std::move(entry));
  }
  return any;
}

// A frame that straddles two entries gets a message of its own: only this frame is copied.
Bytes OutgoingStream::frames_message(cp::Encoder& encoder, std::string_view frames) {
  next_ = {.bytes = frames.size(), .frames = 1, .input = true};
  if (pipe_.has_packets()) return frames_of(encoder, frames);
  if (!partial_frame_.empty()) {
    next_.bytes = frame_bytes_ - partial_frame_.size();
    next_.partial = true;
    const std::string whole = partial_frame_ + std::string(frames.substr(0, next_.bytes));
    return frames_of(encoder, whole);
  }
  next_.frames = std::min<std::uint64_t>(frames.size() / frame_bytes_, credit_);
  next_.bytes = static_cast<std::size_t>(next_.frames) * frame_bytes_;
  return frames_of(encoder, frames.substr(0, next_.bytes));
}

Bytes OutgoingStream::command_message(cp::Encoder& encoder, const ClientMessage& command) {
  const bool end = std::holds_alternative<client_message::End>(command);
  const auto* gap = std::get_if<client_message::Gap>(&command);
  if ((end || gap) && !partial_frame_.empty()) {
    next_.partial = true;
    return frames_of(encoder, partial_frame_);
  }
  next_ = {.frames = gap ? gap->frames : 0, .input = true, .end = end};
  if (gap) return encoder.encode(cp::Gap{.stream = number_, .frames = gap->frames});
  if (const auto* flush = std::get_if<client_message::Flush>(&command))
    return encoder.encode(cp::Flush{.stream = number_, .mark = flush->mark});
  if (std::holds_alternative<client_message::Reset>(command))
    return encoder.encode(cp::Reset{.stream = number_});
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

Bytes OutgoingStream::ack_message(cp::Encoder& encoder) {
  next_ = {.ack = true};
  const bool last = stage_ == Stage::finishing;
  return encoder.encode(
      cp::Received{.stream = number_, .n = last ? last_ack_ : state_.order().next()});
}

Bytes OutgoingStream::frames_of(cp::Encoder& encoder, std::string_view bytes) {
  return encoder.encode(cp::Frames{.stream = number_, .at = position_, .bytes = bytes_in(bytes)});
}

bool OutgoingStream::is_ack_due(Time now) const {
  const auto due = state_.order().ack_due();
  return state_.has_token() && due && *due <= now;
}

void OutgoingStream::sent(Time now) {
  idle_ = keepalive_due_ = false;
  if (next_.ack) {
    state_.order().acked(now);
    ack_waited_ = ack_overdue_ = false;
    if (stage_ == Stage::finishing) stage_ = Stage::over;
    return;
  }
  if (stage_ == Stage::unopened) {
    stage_ = Stage::opening;
    return;
  }
  position_ += next_.frames;
  if (next_.bytes > 0) credit_ -= next_.frames;
  if (next_.partial) partial_frame_.clear();
  if (next_.end) stage_ = Stage::ended;
  if (!next_.input) return;
  ResendBuffer& input = state_.outgoing();
  use(next_.bytes > 0 && !pipe_.has_packets() ? input.sent(next_.bytes) : input.sent());
}

// The end is not in the pipe if the user has closed the stream.
void OutgoingStream::use(const QueuedInput* whole) {
  if (whole && !next_.end) pipe_.sent(*whole);
}

bool OutgoingStream::check_idle() {
  keepalive_due_ = std::exchange(idle_, true) && stage_ == Stage::open;
  return keepalive_due_;
}

bool OutgoingStream::check_ack(Time now) {
  const bool due = is_ack_due(now) && (stage_ == Stage::open || stage_ == Stage::ended);
  const bool waited = std::exchange(ack_waited_, due);
  ack_overdue_ = due && (waited || stage_ == Stage::ended);
  return ack_overdue_;
}

void OutgoingStream::cut_short() {
  cut_short_ = true;
  if (stage_ == Stage::unopened || stage_ == Stage::waiting) stage_ = Stage::over;
  if (stage_ == Stage::opening) stage_ = Stage::open;
}

void OutgoingStream::finish(std::uint64_t n) {
  last_ack_ = n;
  stage_ = state_.has_token() && n > 0 ? Stage::finishing : Stage::over;
}

}  // namespace millrace
