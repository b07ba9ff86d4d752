// SPDX-License-Identifier: Apache-2.0
#include "client/internal/zeromq_stream.h"

#include <algorithm>
#include <random>
#include <utility>
#include <variant>

#include "base/error_code.h"
#include "client/internal/incoming.h"

namespace millrace {
namespace {

namespace cp = client_protocol;
using Verdict = ResumingStream::Verdict;

StreamRequest with_resume(StreamRequest request, bool resume) {
  request.resume = resume;
  request.resumption.reset();
  return request;
}

// The service may accept the stream later.
bool is_temporary(std::string_view code) {
  return code == name_of(ErrorCode::no_room) || code == name_of(ErrorCode::stopping);
}

StreamFailure slow_reader() {
  return StreamFailure::failed("slow_reader", "results were not taken in time");
}

// The number of an Error or Closed in the order of the stream; nullopt for another message.
std::optional<std::uint64_t> last_number(const cp::ToClient& message) {
  if (const auto* error = std::get_if<cp::Error>(&message)) return error->n;
  if (const auto* closed = std::get_if<cp::Closed>(&message)) return closed->n;
  return std::nullopt;
}

}  // namespace

ZeromqStream::ZeromqStream(std::shared_ptr<StreamPipe> pipe, StreamRequest request,
                           const std::string& token, const ClientSettings& settings, bool& resumes,
                           Time now)
    : pipe_(std::move(pipe)),
      settings_(settings),
      resumes_(resumes),
      state_(pipe_->has_packets(), request.options),
      outgoing_(*pipe_, state_, with_resume(std::move(request), resumes), token),
      reconnects_(settings.resume_window, std::random_device{}()),
      due_(now + settings.connect) {}

bool ZeromqStream::receive(const cp::ToClient& message, Time now) {
  if (const auto* ready = std::get_if<cp::Ready>(&message)) return receive_ready(*ready, now);
  if (const auto* error = std::get_if<cp::Error>(&message); error && outgoing_.is_opening()) {
    receive_refusal(*error, now);
    return true;
  }
  if (const auto* credit = std::get_if<cp::Credit>(&message)) outgoing_.grant(credit->frames);
  const Verdict verdict = state_.receive(message);
  if (verdict == Verdict::taken) {
    lose("another connection has continued the stream", now);
    awaits_connection_ = false;  // this one still stands
  }
  if (verdict != Verdict::deliver) return verdict != Verdict::invalid;
  millrace::receive(*pipe_, message);
  if (std::holds_alternative<cp::Closed>(message) || std::holds_alternative<cp::Error>(message)) {
    const auto n = last_number(message);
    outgoing_.finish(n ? *n + 1 : 0);
    due_ = Time::max();
  } else {
    limit_user();
  }
  return true;
}

bool ZeromqStream::receive_ready(const cp::Ready& ready, Time now) {
  if (!outgoing_.is_opening()) return true;
  const StreamReady parts{.stream = ready.id,
                          .pipeline = ready.pipeline,
                          .frame_bytes = ready.frame_bytes,
                          .frames = ready.frames,
                          .commands = ready.commands,
                          .keep = ready.keep,
                          .resume = ready.resume,
                          .resumed = ready.resumed};
  if (outgoing_.resumes()) {
    if (!state_.resume(parts, now)) return false;
    pipe_->deliver(client_event::Resumed{*ready.resumed});
  } else {
    if (outgoing_.wants_resume()) state_.open(parts, now);
    millrace::receive(*pipe_, ready);
  }
  outgoing_.open(ready);
  reconnects_.opened(now);
  due_ = Time::max();
  limit_user();
  return true;
}

void ZeromqStream::receive_refusal(const cp::Error& error, Time now) {
  StreamFailure refusal = refusal_of(error);
  if (outgoing_.resumes()) {
    const bool conflict =
        error.code == name_of(ErrorCode::conflict) && !std::exchange(conflicted_, true);
    if (is_temporary(error.code) || conflict)
      return wait(refusal.message, error.retry_after.value_or(std::chrono::milliseconds(0)), now);
    outgoing_.drop();
    give_up("the service no longer has the stream: " + refusal.message);
  } else if (outgoing_.wants_resume() && error.parameter == "resume") {
    resumes_ = false;
    outgoing_.request_without_resume();
  } else {
    outgoing_.drop();
    pipe_->fail(std::move(refusal));
  }
}

// Also after the user has closed the stream: the service still gets its input.
void ZeromqStream::lose(const std::string& why, Time now) {
  if (pipe_->has_ended() || !state_.can_resume()) {
    outgoing_.drop();
    return pipe_->fail(StreamFailure::lost(why));
  }
  if (outgoing_.is_waiting()) return;
  awaits_user_ = false;
  std::string problem = why;
  if (!outgoing_.awaits_answer()) {
    why_lost_ = std::exchange(problem, "");
    conflicted_ = false;
    reconnects_.lost(now, state_.has_progressed());
  }
  wait(std::move(problem), {}, now);
  awaits_connection_ = outgoing_.is_waiting();
}

void ZeromqStream::wait(std::string problem, Duration delay, Time now) {
  problem_ = std::move(problem);
  outgoing_.wait();
  const auto at = reconnects_.next(now, delay);
  due_ = at.value_or(Time::max());
  if (!at) give_up(problem_.empty() ? "" : "could not be resumed: " + problem_);
}

void ZeromqStream::give_up(const std::string& why) {
  fail(StreamFailure::lost(why.empty() ? why_lost_ : why_lost_ + ", and " + why));
}

void ZeromqStream::fail(StreamFailure why) {
  pipe_->fail(std::move(why));
  outgoing_.cut_short();
  due_ = Time::max();
}

void ZeromqStream::request(Time now) {
  awaits_connection_ = false;
  requested_ = now;
  due_ = now + attempt_time();
  outgoing_.request();
}

void ZeromqStream::woken() {
  if (!awaits_user_ || pipe_->held_up()) return;
  awaits_user_ = false;
  due_ = Time::max();
}

// Messages of workers arrive even if nothing more is sent, and other streams share the connection.
void ZeromqStream::limit_user() {
  if (pipe_->overflows()) return fail(slow_reader());
  if (!pipe_->held_up()) return;
  awaits_user_ = true;
  due_ = pipe_->held_up_since() + settings_.taking;
}

ZeromqStream::Expired ZeromqStream::expire(Time now, Time heard) {
  if (now < due_) return Expired::nothing;
  if (outgoing_.is_waiting()) return Expired::wait;
  if (awaits_user_) {  // the user may have taken an event meanwhile
    due_ = pipe_->held_up_since() + settings_.taking;
    if (now >= due_) fail(slow_reader());
  } else if (!outgoing_.resumes()) {
    fail(StreamFailure::lost("the service does not answer"));
  } else if (now >= reconnects_.limit()) {
    give_up("could not be resumed: the service does not answer");
  } else if (heard < requested_) {
    return Expired::silence;
  } else {
    due_ = reconnects_.limit();
  }
  return Expired::nothing;
}

}  // namespace millrace
