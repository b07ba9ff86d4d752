// SPDX-License-Identifier: Apache-2.0
#include "client/internal/resume/resuming_stream.h"

#include <algorithm>
#include <utility>

#include "base/error_code.h"

namespace millrace {
namespace {

namespace cp = client_protocol;
using Type = ServerMessage::Type;

constexpr std::size_t longest_token = 4096;

// The token becomes part of a field of HTTP.
bool is_token(std::string_view text) {
  return !text.empty() && text.size() <= longest_token &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f' && c != ','; });
}

bool has_place(Type type) {
  return type == Type::result || type == Type::message || type == Type::flushed ||
         type == Type::rejected || type == Type::closed;
}

// An older connection of this client may have continued the stream: a proxy sent a request twice.
// Only this error has no number.
bool is_conflict(std::string_view code, const std::optional<std::uint64_t>& n) {
  return !n && code == name_of(ErrorCode::conflict);
}

}  // namespace

StreamReady ResumingStream::parts_of(const ServerMessage& ready) {
  return {.stream = ready.stream,
          .pipeline = ready.pipeline,
          .frame_bytes = ready.frame_bytes,
          .frames = ready.frames,
          .commands = ready.commands,
          .keep = ready.keep,
          .resume = ready.resume,
          .resumed = ready.resumed};
}

void ResumingStream::open(const StreamReady& ready, Time now) {
  const bool frames = packets_ || ready.frame_bytes > 0;
  if (!is_token(ready.resume) || !frames || ready.keep == 0) return;
  token_ = ready.resume;
  outgoing_.keep({.frames = ready.frames, .frame_bytes = ready.frame_bytes, .most = ready.keep});
  order_.resumed(true, now);
}

bool ResumingStream::resume(const StreamReady& ready, Time now) {
  if (!ready.resumed || !outgoing_.resume(ready.frames, ready.commands)) return false;
  token_ = is_token(ready.resume) ? ready.resume : "";
  order_.resumed(*ready.resumed, now);
  if (!*ready.resumed) goaway_ = false;  // that of another service
  return true;
}

Resumption ResumingStream::resumption() const {
  return {.token = token_,
          .n = order_.next(),
          .point = outgoing_.point(),
          .results = order_.results(),
          .flushed = order_.flushed(),
          .set = outgoing_.options()};
}

ResumingStream::Verdict ResumingStream::receive(const ServerMessage& message) {
  if (!has_token()) return Verdict::deliver;
  if (message.type == Type::error && is_conflict(message.code, message.n)) return Verdict::taken;
  if (message.type == Type::ack) return receive(std::nullopt, message.point);
  if (message.type == Type::goaway) return receive_goaway();
  // An error is delivered whatever its number: messages before it may have been dropped.
  if (!has_place(message.type)) return Verdict::deliver;
  if (!message.n) return Verdict::invalid;
  MessageOrder::Place place{.n = *message.n};
  if (message.type == Type::result) place.result = message.seq;
  if (message.type == Type::flushed) place.flushed = message.seq;
  return receive(place, message.point);
}

struct ResumingStream::Receiver {
  ResumingStream& stream;

  Verdict operator()(const cp::Result& result) const {
    if (!result.number) return Verdict::invalid;
    return stream.receive(MessageOrder::Place{.n = result.number->n, .result = result.seq},
                          result.number->point);
  }
  Verdict operator()(const cp::Flushed& flushed) const {
    if (!flushed.n) return Verdict::invalid;
    return stream.receive(MessageOrder::Place{.n = *flushed.n, .flushed = flushed.seq}, {});
  }
  Verdict operator()(const cp::Message& message) const { return numbered(message.n); }
  Verdict operator()(const cp::Rejected& rejected) const { return numbered(rejected.n); }
  Verdict operator()(const cp::Closed& closed) const { return numbered(closed.n); }
  Verdict operator()(const cp::Error& error) const {
    return is_conflict(error.code, error.n) ? Verdict::taken : Verdict::deliver;
  }
  Verdict operator()(const cp::Ack& ack) const { return stream.receive(std::nullopt, ack.place); }
  Verdict operator()(const cp::Goaway& /*goaway*/) const { return stream.receive_goaway(); }
  Verdict operator()(const auto& /*other*/) const { return Verdict::deliver; }

 private:
  Verdict numbered(const std::optional<std::uint64_t>& n) const {
    return n ? stream.receive(MessageOrder::Place{.n = *n}, {}) : Verdict::invalid;
  }
};

ResumingStream::Verdict ResumingStream::receive(const cp::ToClient& message) {
  return has_token() ? std::visit(Receiver{*this}, message) : Verdict::deliver;
}

// Each connection has its own, and the user needs one.
ResumingStream::Verdict ResumingStream::receive_goaway() {
  return std::exchange(goaway_, true) ? Verdict::drop : Verdict::deliver;
}

ResumingStream::Verdict ResumingStream::receive(const std::optional<MessageOrder::Place>& place,
                                                const std::optional<ResumePoint>& point) {
  const Verdict verdict = place ? order_.receive(*place) : Verdict::drop;
  if (verdict == Verdict::invalid) return verdict;
  return point && !outgoing_.acknowledge(*point) ? Verdict::invalid : verdict;
}

bool ResumingStream::has_progressed() {
  const Progress now{.messages = order_.next(),
                     .acked_frames = outgoing_.point().frames,
                     .acked_commands = outgoing_.point().commands,
                     .frames = outgoing_.received_frames(),
                     .commands = outgoing_.received_commands()};
  return std::exchange(progress_, now) != now;
}

}  // namespace millrace
