// SPDX-License-Identifier: Apache-2.0
#include "transport/sessions/zeromq/peer_stream.h"

#include <algorithm>
#include <cassert>
#include <span>
#include <string>
#include <utility>

#include "schemas/client_command.h"
#include "schemas/text.h"
#include "streams/waiting_events.h"

namespace millrace {

namespace cp = client_protocol;

namespace {

constexpr std::uint64_t max_position = cp::max_number + 1;
// Upper bound of the bytes of a result around its answer.
constexpr std::size_t result_envelope = 256;

}  // namespace

void PeerStream::begin(StreamHandle stream, Time now) {
  stream_ = std::move(stream);
  last_received_ = now;
  ended_ = stream_->has_ended();
  top_up();
}

void PeerStream::received(const cp::Frames& frames, Time now) {
  if (!accepts_input(now)) return;
  if (frames.bytes.empty()) return accept(MessageType::control, 0);
  const std::uint64_t count = frames_in(frames.bytes);
  const bool within_credit = static_cast<std::int64_t>(count) <= granted_;
  granted_ -= static_cast<std::int64_t>(count);
  if (frames.at > max_position || count > max_position - frames.at) {
    reject({ErrorCode::values, "positions must be at most 2^53", MessageFault::position}, 0, now);
    return top_up();
  }
  if (frames.at > position_) stream_->gap(frames.at - std::exchange(position_, frames.at), now);
  if (closing_) return;
  const std::uint64_t had = std::min(count, position_ - frames.at);
  if (had > 0) context_.stats.rejected[MessageFault::position].add();
  position_ += count - had;
  const std::uint64_t rejections = rejections_;
  if (const auto fault = fault_of(frames, within_credit)) {
    reject(*fault, count - had, now);
  } else if (count > had) {
    const std::size_t skipped = static_cast<std::size_t>(had) * frame_bytes_.value_or(0);
    pieces_.begin(*stream_, frames.bytes.subspan(skipped), now);
    if (rejections == rejections_ && !closing_) accept(MessageType::data, frames.bytes.size());
  }
  top_up();
}

void PeerStream::proceed() {
  if (!closing_) pieces_.proceed(*stream_);
  if (closing_) pieces_.clear();  // the peer may leave the error unread for long
  top_up();
}

std::uint64_t PeerStream::frames_in(Bytes message) const {
  return frame_bytes_ ? message.size() / *frame_bytes_ : 1;
}

std::optional<PeerStream::Fault> PeerStream::fault_of(const cp::Frames& frames,
                                                      bool within_credit) const {
  if (frames.bytes.size() > context_.limits.message)
    return Fault{ErrorCode::too_long,
                 "a message has at most " + std::to_string(context_.limits.message) +
                     " bytes of frames, not " + std::to_string(frames.bytes.size()),
                 MessageFault::size};
  if (frame_bytes_ && frames.bytes.size() % *frame_bytes_ != 0)
    return Fault{ErrorCode::values, "not a whole number of frames", MessageFault::format};
  if (!within_credit) {
    const auto count = static_cast<std::int64_t>(frames_in(frames.bytes));
    return Fault{ErrorCode::too_fast,
                 std::to_string(count) + " frames with a credit of " +
                     std::to_string(std::max<std::int64_t>(granted_ + count, 0)) +
                     ": wait for Credit before you send more",
                 MessageFault::rate_limit};
  }
  return std::nullopt;
}

void PeerStream::received(const cp::Flush& flush, Time now) {
  if (!accepts_input(now)) return;
  accept(MessageType::control, 0);
  stream_->flush(flush.mark, now);
}

void PeerStream::received(const cp::Reset&, Time now) {
  if (!accepts_input(now)) return;
  accept(MessageType::control, 0);
  stream_->reset(now);
}

void PeerStream::received(const cp::Gap& gap, Time now) {
  if (!accepts_input(now)) return;
  accept(MessageType::control, 0);
  position_ += gap.frames;  // the stream fails beyond the last position
  stream_->gap(gap.frames, now);
}

void PeerStream::received(const cp::Post& post, Time now) {
  if (accepts_json(post.data, is_json, "data must be JSON", now)) stream_->post(post.data, now);
}

void PeerStream::received(const cp::SetOptions& set, Time now) {
  if (accepts_json(set.options, is_json_object, "options must be a JSON object", now))
    stream_->set(set.options, now);
}

// A text that is too long is not parsed: the stream rejects it.
bool PeerStream::accepts_json(std::string_view text,
                              bool (*is_valid)(std::string_view, std::size_t),
                              std::string_view what, Time now) {
  if (!accepts_input(now)) return false;
  accept(MessageType::control, 0);
  constexpr std::size_t deepest = client_message::deepest_data;
  if (text.size() > context_.limits.text || is_valid(text, deepest)) return true;
  stream_->reject_command(
      ErrorCode::schema,
      std::string(what) + ", nested at most " + std::to_string(deepest) + " deep", now);
  return false;
}

void PeerStream::received(const cp::End&, Time now) {
  if (closing_) return;
  last_received_ = now;
  accept(MessageType::close, 0);
  if (!std::exchange(ended_, true)) stream_->end(now);
}

// Also after the peer's end: messages still follow.
void PeerStream::received(const cp::Received& received, Time now) {
  last_received_ = now;
  accept(MessageType::control, 0);
  stream_->acknowledge(received.n, now);
  if (last_ && received.n > *last_) acknowledge_all();
}

// False if the message must not reach the stream: it has ended or failed, or fails here.
bool PeerStream::accepts_input(Time now) {
  if (closing_) return false;
  last_received_ = now;
  const bool resumes = stream_->outlives_connection();
  if (unsent_other_ > context_.limits.unsent && !resumes) {
    fail(ErrorCode::slow_reader,
         "more than " + std::to_string(context_.limits.unsent) +
             " bytes of answers to messages are not read: read while you send",
         now);
  } else if (ended_) {
    // A stream that resumes may have failed, and its client may not know that yet.
    if (!resumes) rejected(ErrorCode::unknown_stream, "the stream has ended", 0);
  } else if (stream_->overrun()) {
    context_.stats.rejected[MessageFault::rate_limit].add();
    fail(ErrorCode::too_fast,
         std::to_string(WaitingEvents::overrun) +
             " commands wait to be processed, or too many rejections to be acknowledged: send more "
             "slowly",
         now);
  }
  return !ended_ && !closing_;
}

void PeerStream::reject(const Fault& fault, std::uint64_t frames, Time now) {
  fault_ = fault.counted;
  stream_->reject(fault.code, fault.message, frames, now);
  fault_.reset();
}

void PeerStream::accept(MessageType type, std::size_t bytes) {
  context_.stats.messages[type].add();
  if (type == MessageType::data) context_.stats.message.observe(static_cast<std::int64_t>(bytes));
}

void PeerStream::top_up() {
  // The stream does not hold the frames of the other pieces yet.
  if (closing_ || ended_ || !stream_ || full_ || !pieces_.empty()) return;
  const auto credit = static_cast<std::int64_t>(std::min(stream_->credit(), cp::max_number));
  if (credit == 0 || granted_ > credit / 2) return;
  enqueue(cp::Credit{.stream = number_, .frames = static_cast<std::uint64_t>(credit - granted_)});
  granted_ = credit;
}

void PeerStream::check(Time now) {
  if (!closing_) stream_->check(now);
  if (closing_) return await_acknowledgement(now);
  if (ended_) return;
  top_up();
  // A peer that may not send cannot be idle.
  if (granted_ <= 0 || stream_->credit() == 0) last_received_ = now;
  if (stream_->credit() == 0) return stream_->tick(now);
  if (now - last_received_ > context_.limits.idle)
    fail(ErrorCode::idle,
         "nothing was received for " + seconds_of(context_.limits.idle) +
             "; send an empty Frames message (heartbeats do not count)",
         now);
}

void PeerStream::await_acknowledgement(Time now) {
  if (!sent_all()) return;
  if (!sent_all_since_) sent_all_since_ = now;
  timed_out_ = now - *sent_all_since_ > context_.limits.close;
}

void PeerStream::fail(ErrorCode code, std::string_view message, Time now) {
  if (closing_) return;
  stream_->fail(code, message, now);
  error(code, message);
}

void PeerStream::sent(const PeerOutbox::Label& label, Time now) {
  unsent_ -= label.bytes;
  if (!label.is_result) unsent_other_ -= label.bytes;
  if (unsent_ <= context_.limits.unsent / 2) full_ = false;
  if (stream_) stream_->written(label.is_result ? 1 : 0, now);  // it may have failed to open
  top_up();
}

void PeerStream::lost(Time now) {
  const bool has_all = closing_ && !last_;
  if (stream_) stream_->disconnected(has_all ? ConnectionEnd::clean : ConnectionEnd::lost, now);
  stream_.reset();
}

void PeerStream::drop_queued() {
  if (closing_) return;
  outbox_.drop(*this);
  unsent_ = unsent_other_ = 0;
  full_ = false;
}

template <class Message>
void PeerStream::enqueue(const Message& message, bool is_result) {
  const std::size_t bytes = outbox_.enqueue(message, this, is_result);
  unsent_ += bytes;
  if (!is_result) unsent_other_ += bytes;
  if (unsent_ >= context_.limits.unsent) full_ = true;
}

void PeerStream::ready(const StreamReady& ready) {
  frame_bytes_ = ready.frame_bytes > 0 ? std::optional(ready.frame_bytes) : std::nullopt;
  position_ = ready.frames;
  enqueue(cp::Ready{.stream = number_,
                    .id = ready.stream,
                    .pipeline = ready.pipeline,
                    .frames = ready.frames,
                    .frame_bytes = static_cast<std::uint32_t>(ready.frame_bytes),
                    .commands = ready.commands,
                    .keep = ready.keep,
                    .resume = ready.resume,
                    .resumed = ready.resumed});
}

std::optional<std::uint64_t> PeerStream::take_number() {
  const auto number = std::exchange(next_, {});
  return number ? std::optional(number->n) : std::nullopt;
}

void PeerStream::acknowledged(const ResumePoint& point) {
  if (!closing_) enqueue(cp::Ack{.stream = number_, .place = point});
}

void PeerStream::result(const ResultHead& head, const Answer& answer) {
  assert(answer.kind != Answer::Kind::none);
  if (closing_) return;
  const bool failed = answer.kind == Answer::Kind::error;
  const bool too_long =
      !failed && answer.data.size() + result_envelope > context_.limits.max_message_sent;
  const std::string_view data = failed     ? "worker_failed"
                                : too_long ? name_of(ErrorCode::too_long)
                                           : answer.data;
  enqueue(cp::Result{.stream = number_,
                     .seq = head.seq,
                     .begin = head.begin,
                     .end = head.end,
                     .begin_s = static_cast<double>(head.begin) / head.rate,
                     .end_s = static_cast<double>(head.end) / head.rate,
                     .flags = head.flags,
                     .kind = too_long ? Answer::Kind::error : answer.kind,
                     .data = std::as_bytes(std::span(data)),
                     .number = std::exchange(next_, {})},
          true);
}

void PeerStream::message(const MessageHead& head, const Answer& message) {
  if (closing_) return;
  enqueue(cp::Message{.stream = number_,
                      .number = head.number,
                      .seq = head.seq,
                      .kind = message.kind,
                      .data = std::as_bytes(std::span(message.data)),
                      .n = take_number()},
          true);
}

void PeerStream::flushed(std::uint64_t mark, std::uint64_t seq) {
  if (closing_) return;
  const auto n = take_number();
  enqueue(cp::Flushed{.stream = number_, .mark = mark, .n = n, .seq = n ? seq : 0});
}

void PeerStream::rejected(ErrorCode code, std::string_view message, std::uint64_t frames) {
  if (closing_) return;
  ++rejections_;
  const auto fault = fault_ ? fault_ : millrace::fault_of(code, frames);
  if (fault) context_.stats.rejected[*fault].add();
  enqueue(cp::Rejected{.stream = number_,
                       .code = name_of(code),
                       .message = message,
                       .frames = frames,
                       .n = take_number()});
}

void PeerStream::goaway() {
  if (!closing_)
    enqueue(cp::Goaway{.stream = number_, .retry_after = context_.retry_times.after_goaway()});
}

void PeerStream::error(ErrorCode code, std::string_view message) {
  if (closing_) return;
  const auto n = take_number();
  enqueue(cp::Error{.stream = number_, .code = name_of(code), .message = message, .n = n});
  close(n);
}

void PeerStream::closed(std::uint64_t frames, std::uint64_t chunks, bool drained) {
  if (closing_) return;
  const auto n = take_number();
  enqueue(cp::Closed{.stream = number_, .frames = frames, .chunks = chunks, .n = n});
  close(drained ? std::nullopt : n);  // a service that stops keeps no messages
}

void PeerStream::close(std::optional<std::uint64_t> last) {
  closing_ = true;
  last_ = last;
}

}  // namespace millrace
