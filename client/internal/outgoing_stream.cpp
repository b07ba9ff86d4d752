// SPDX-License-Identifier: Apache-2.0
#include "client/internal/outgoing_stream.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "client/internal/limits.h"

namespace millrace {
namespace {

namespace cp = client_protocol;

std::optional<std::string_view> given(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional<std::string_view>(text);
}

Bytes bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

}  // namespace

OutgoingStream::OutgoingStream(StreamPipe& pipe, StreamRequest request)
    : pipe_(pipe), number_(pipe.number()), request_(std::move(request)) {}

Bytes OutgoingStream::next(cp::Encoder& encoder) {
  next_ = {};
  switch (stage_) {
    case Stage::closed: return open_message(encoder);
    case Stage::open: return words(encoder);
    default: return {};
  }
}

Bytes OutgoingStream::open_message(cp::Encoder& encoder) {
  return encoder.encode(cp::Open{.stream = number_,
                                 .pipeline = given(request_.pipeline),
                                 .id = given(request_.id),
                                 .format = request_.format,
                                 .rate = request_.rate,
                                 .channels = request_.channels,
                                 .dim = request_.dim,
                                 .channel = request_.channel,
                                 .chunk = request_.chunk,
                                 .options = given(request_.options)});
}

void OutgoingStream::open(const cp::Ready& ready) {
  if (stage_ != Stage::opening) return;
  stage_ = Stage::open;
  position_ = ready.frames;
  frame_ = std::max<std::size_t>(1, ready.frame_bytes);
}

// A message out of what was said.
Bytes OutgoingStream::words(cp::Encoder& encoder) {
  const bool last = pipe_.abandoned();  // asked before what was said is taken: then that is all
  if (pipe_.held_up()) return sign_of_life(encoder);
  while (find_words()) {
    if (const auto* command = std::get_if<ClientMessage>(&said_[current_])) {
      return command_message(encoder, *command);
    } else if (part_.size() + left().size() >= frame_) {
      return credit_ > 0 ? frames_message(encoder) : sign_of_life(encoder);
    } else {
      part_ += left();
      pass();
    }
  }
  next_.end = cut_short_ || last;
  return next_.end ? encoder.encode(cp::End{.stream = number_}) : sign_of_life(encoder);
}

bool OutgoingStream::find_words() {
  if (current_ < said_.size()) return true;
  current_ = 0;
  pipe_.take(said_);
  return !said_.empty();
}

// Where a frame straddles what was said, that one alone: nothing is copied but it.
Bytes OutgoingStream::frames_message(cp::Encoder& encoder) {
  if (!part_.empty()) {
    next_ = {.bytes = frame_ - part_.size(), .frames = 1, .part = true};
    const std::string whole = part_ + std::string(left().substr(0, next_.bytes));
    return frames_of(encoder, whole);
  }
  const std::uint64_t most = std::max<std::uint64_t>(1, longest_frames / frame_);
  next_.frames = std::min({static_cast<std::uint64_t>(left().size() / frame_), credit_, most});
  next_.bytes = static_cast<std::size_t>(next_.frames) * frame_;
  return frames_of(encoder, left().substr(0, next_.bytes));
}

Bytes OutgoingStream::command_message(cp::Encoder& encoder, const ClientMessage& command) {
  // Half a frame is for the service to refuse, as it is over WebSocket.
  if (std::holds_alternative<client_message::End>(command) && !part_.empty()) {
    next_.part = true;
    return frames_of(encoder, part_);
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
  return encoder.encode(cp::End{.stream = number_});
}

// No frames: which needs no credit.
Bytes OutgoingStream::sign_of_life(cp::Encoder& encoder) {
  return sign_due_ ? frames_of(encoder, "") : Bytes();
}

Bytes OutgoingStream::frames_of(cp::Encoder& encoder, std::string_view bytes) {
  return encoder.encode(cp::Frames{.stream = number_, .at = position_, .bytes = bytes_of(bytes)});
}

void OutgoingStream::sent() {
  quiet_ = sign_due_ = false;
  if (stage_ == Stage::closed) {
    stage_ = Stage::opening;
    return;
  }
  position_ += next_.frames;
  if (next_.end) stage_ = Stage::ended;
  if (next_.command) return pass();
  if (next_.part) part_.clear();
  credit_ -= next_.frames;
  begun_ += next_.bytes;
  if (next_.bytes > 0 && left().empty()) pass();
}

bool OutgoingStream::beat() {
  sign_due_ = std::exchange(quiet_, true) && stage_ == Stage::open;
  return sign_due_;
}

void OutgoingStream::cut_short() {
  current_ = begun_ = 0;
  part_.clear();
  said_.clear();
  cut_short_ = true;
  if (stage_ == Stage::closed) stage_ = Stage::ended;
  if (stage_ == Stage::opening) stage_ = Stage::open;
}

std::string_view OutgoingStream::left() const {
  return std::string_view(std::get<std::string>(said_[current_])).substr(begun_);
}

void OutgoingStream::pass() {
  pipe_.sent(said_[current_]);
  ++current_;
  begun_ = 0;
}

}  // namespace millrace
