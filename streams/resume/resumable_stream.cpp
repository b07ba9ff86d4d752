// SPDX-License-Identifier: Apache-2.0
#include "streams/resume/resumable_stream.h"

#include <algorithm>
#include <cassert>
#include <new>
#include <utility>

#include "schemas/text.h"
#include "streams/resume/client_link.h"

namespace millrace {
namespace {

constexpr std::chrono::seconds ack_period{1};

ResumePoints::Place place_of(const ResumePoint& point) {
  return {.seq = point.seq, .begin = point.begin, .commands = point.commands};
}

}  // namespace

ResumableStream::ResumableStream(const Settings& settings, ResumeHome& home)
    : settings_(settings),
      shelf_(settings.n),
      home_(home),
      given_(settings.epoch),
      used_(std::max(settings.epoch, 1u) - 1) {}

ResumableStream::~ResumableStream() { take_from_client(); }

void ResumableStream::take_from_client() {
  if (!link_) return;
  std::exchange(link_, nullptr)->cut();
  ClientOutput& client = *std::exchange(client_, nullptr);
  client.drop_queued();  // the next connection receives all of it
  try {
    client.error(ErrorCode::conflict, "the client has continued the stream over a new connection");
  } catch (const std::bad_alloc&) {  // the connection ends when it is silent
  }
}

void ResumableStream::take(Stream& stream) {
  assert(!stream_);
  stream_ = &stream;
  handle_.reset(&stream);
}

// A token is used only when something arrived over its connection: the answer to the client may be
// lost before. So the two newest tokens may be shown. One that was given elsewhere has the epoch of
// a token that was given here if the client has lost the latter.
ResumableStream::Epoch ResumableStream::check(std::uint32_t epoch, std::uint32_t opening) const {
  if (epoch <= used_) return Epoch::used;
  const bool opens = epoch == settings_.epoch;
  const bool is_known = opening == (opens ? settings_.opened_by : settings_.opening);
  return epoch <= given_ && is_known ? Epoch::continues : Epoch::newer;
}

std::string_view ResumableStream::misfit(const Resumption& resumption) const {
  const Stream::Received received = stream_->received();
  // After an error, messages may have been dropped because memory was short.
  if ((resumption.n < shelf_.first() && !over_) || resumption.n > shelf_.next()) return "n";
  if (resumption.point.seq > stream_->next_row()) return "seq";
  if (resumption.point.frames > received.frames) return "from";
  if (resumption.point.commands > received.commands) return "commands";
  // The client of a stream that was opened anew may have more than was repeated so far.
  if (resumption.point.begin > std::max(stream_->position(), stream_->resume_point().begin))
    return "begin";
  if (resumption.results > std::max(stream_->next_row(), settings_.results)) return "have";
  if (resumption.flushed > std::max(stream_->next_row(), settings_.flushed)) return "flushed";
  return {};
}

StreamHandle ResumableStream::attach(ClientOutput& client, std::uint32_t epoch, std::uint64_t n,
                                     std::string_view token, std::optional<bool> resumed,
                                     Time now) {
  take_from_client();
  if (detached_since_) home_.returned(*this);
  const Time lost_at = std::exchange(detached_since_, std::nullopt).value_or(now);
  try {
    acknowledged_ = {};  // the newest one may be lost
    ack_due_ = {};
    stream_->drop_partial_frame();
    n = std::max(n, shelf_.first());
    if (n > shelf_.first()) full_since_.reset();
    if (full_since_) *full_since_ += now - lost_at;
    has_acknowledged(n);
    shelf_.seek(n);
    given_ = std::max(given_, epoch + 1);  // a request may be late
    // The client has the results before these, even if their connection did not report it.
    const std::size_t kept = shelf_.results();
    if (unreported_ > kept) report_written(unreported_ - kept, now);
    repeated_ = static_cast<std::uint32_t>(kept) - unreported_;

    auto link = std::make_unique<ClientLink>(*this, epoch);
    greet(client, token, resumed);
    client_ = &client;
    link_ = link.get();
    give_some();
    stream_->written(0, now);  // it may give rows to the lane again
    check_stall(now);          // the connections may be shorter than the time between two checks
    return StreamHandle(link.release());
  } catch (...) {  // no memory: as if the connection were lost at once
    connection_ended(ConnectionEnd::lost, now);
    throw;
  }
}

void ResumableStream::greet(ClientOutput& client, std::string_view token,
                            std::optional<bool> resumed) {
  const Stream::Received received = stream_->received();
  client.ready({.stream = id_in(stream_->settings().name),
                .pipeline = stream_->settings().pipeline,
                .frame_bytes =
                    size_of(stream_->settings().format.format) * stream_->settings().format.values,
                .frames = received.frames,
                .commands = received.commands,
                .keep = settings_.keep,
                .resume = token,
                .resumed = resumed});
  if (stream_->has_goaway() && !over_) client.goaway();
}

void ResumableStream::keep(const auto& message, const Answer& text) {
  const bool needed = needs_acknowledgement(), is_next = shelf_.has_given_all();
  shelf_.add(message, text);
  if (!client_) return;
  if (!is_next) give_some();
  if (is_next && !client_->full()) shelf_.give_last(message, text, *client_);
  if (!needed && needs_acknowledgement() && stream_->paused()) client_->resume();
}

void ResumableStream::give_some() {
  while (client_ && !shelf_.has_given_all() && client_->has_room()) shelf_.give_next(*client_);
}

void ResumableStream::result(const ResultHead& head, const Answer& answer) {
  if (head.seq < settings_.results) {
    ++dropped_;
    return;
  }
  const ResumePoint point = stream_->resume_point();
  ++unreported_;
  keep(ClientShelf::Result{head, point}, answer);
  if (client_ && shelf_.has_given_all()) acknowledged_ = place_of(point);
}

void ResumableStream::message(const MessageHead& head, const Answer& message) {
  ++unreported_;
  keep(ClientShelf::Message{head}, message);
}

bool ResumableStream::full() const {
  return needs_acknowledgement() || (client_ && client_->full());
}

void ResumableStream::flushed(std::uint64_t mark, std::uint64_t seq) {
  if (seq >= settings_.flushed) keep(ClientShelf::Flushed{mark, seq});
}

void ResumableStream::rejected(ErrorCode code, std::string_view message, std::uint64_t frames) {
  keep(ClientShelf::Rejected{code, frames}, {.data = std::string(message)});
  if (needs_acknowledgement()) rejected_bytes_ += ClientShelf::overhead + message.size();
}

void ResumableStream::warning(ErrorCode code, std::string_view message) {
  if (client_) client_->warning(code, message);
}

void ResumableStream::goaway() {
  if (client_) client_->goaway();
}

void ResumableStream::error(ErrorCode code, std::string_view message) {
  over_ = true;
  keep(ClientShelf::Error{code}, {.data = std::string(message)});
}

void ResumableStream::closed(std::uint64_t frames, std::uint64_t chunks, bool drained) {
  over_ = true;
  keep(ClientShelf::Closed{frames, chunks, drained});
}

void ResumableStream::drop_queued() {
  if (over_) return;
  has_acknowledged(shelf_.next());
  if (client_) client_->drop_queued();
}

std::size_t ResumableStream::reclaimable() const {
  return over_ ? 0 : shelf_.bytes() + (client_ ? client_->reclaimable() : 0);
}

void ResumableStream::resume() {
  if (client_) client_->resume();
}

void ResumableStream::credit_available() {
  if (client_) client_->credit_available();
}

void ResumableStream::used(std::uint32_t epoch) {
  used_ = epoch;
  has_input_ = true;
}

// The connection's fault: it ends with the error. The messages before it, which the client may not
// have room for, wait for the next one.
void ResumableStream::fail(ErrorCode code, std::string_view message, Time now) {
  shelf_.seek(over_ ? std::max(shelf_.given(), shelf_.next() - 1) : shelf_.next());
  stream_->fail(code, message, now);
  while (client_ && !shelf_.has_given_all()) shelf_.give_next(*client_);
}

void ResumableStream::has_acknowledged(std::uint64_t n) {
  shelf_.acknowledge(n);
  if (needs_acknowledgement()) return;
  rejected_bytes_ = 0;
  full_since_.reset();
}

void ResumableStream::acknowledge(std::uint64_t n, Time now) {
  if (n > shelf_.given())
    return stream_->fail(ErrorCode::schema, "ack: no message has this number yet", now);
  if (n <= shelf_.first()) return;
  const bool was_full = full();
  has_acknowledged(n);
  full_since_.reset();
  if (was_full && !full()) stream_->written(0, now);
}

void ResumableStream::check(Time now) {
  if (now < ack_due_ && dropped_ == 0 && !needs_acknowledgement()) return;
  if (dropped_ > 0) stream_->written(std::exchange(dropped_, 0), now);
  if (over_) return;
  send_ack(now);
  check_stall(now);
}

void ResumableStream::check_stall(Time now) {
  if (over_ || !needs_acknowledgement()) return;
  if (!full_since_) full_since_ = now;
  if (now - *full_since_ > settings_.stall)
    stream_->fail(ErrorCode::slow_reader,
                  "the client acknowledged too few messages: send ack while you receive", now);
}

void ResumableStream::send_ack(Time now) {
  if (now < ack_due_ || !shelf_.has_given_all()) return;
  const ResumePoint point = stream_->resume_point();
  stream_->forget_before(point);
  ack_due_ = now + ack_period;
  if (acknowledged_ == place_of(point)) return;
  acknowledged_ = place_of(point);
  client_->acknowledged(point);
}

// Results that were written to an earlier connection too are reported once.
void ResumableStream::written(std::size_t results, Time now) {
  const auto repeated = static_cast<std::uint32_t>(std::min<std::size_t>(results, repeated_));
  repeated_ -= repeated;
  if (!shelf_.has_given_all()) give_some();
  report_written(results - repeated, now);
}

bool ResumableStream::waits(ConnectionEnd how) const {
  if (how == ConnectionEnd::clean || !has_input_) return false;
  if (over_) return how == ConnectionEnd::lost && !shelf_.empty();
  return how != ConnectionEnd::moved || !stream_->has_goaway();
}

void ResumableStream::connection_ended(ConnectionEnd how, Time now) {
  client_ = nullptr;
  link_ = nullptr;
  if (waits(how) && home_.keeps(*this, now)) {
    detached_since_ = now;
    return;
  }
  stream_->disconnected(how, now);
  home_.remove(*this);
}

}  // namespace millrace
