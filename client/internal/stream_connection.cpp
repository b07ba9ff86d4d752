// SPDX-License-Identifier: Apache-2.0
#include "client/internal/stream_connection.h"

#include <algorithm>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>
#include <utility>
#include <variant>
#include <vector>

#include "client/internal/incoming.h"
#include "schemas/client_codec.h"
#include "schemas/json_commands.h"
#include "transport/websocket/frame_head.h"

namespace millrace {
namespace {

using net::experimental::awaitable_operators::operator&&;
using Kind = Connection::Kind;
using Verdict = ResumingStream::Verdict;

constexpr std::chrono::milliseconds ack_delay{500};  // for which an ack waits for a message
constexpr int checks = 8;                            // checks of the other host within `silence`
constexpr std::size_t frame_overhead = 6;  // least bytes of a WebSocket frame besides its payload

std::string reason_of(const Connection::Ended& ended) {
  if (ended.how != Connection::Ended::How::closed) return "the connection was lost";
  return "the connection was closed with code " + std::to_string(ended.code) +
         " before the stream had ended";
}

}  // namespace

StreamConnection::StreamConnection(Executor executor, std::unique_ptr<Connection> connection,
                                   StreamPipe& pipe, ResumingStream& state, Asked asked,
                                   const ClientSettings& settings, Duration answer)
    : executor_(executor),
      connection_(std::move(connection)),
      pipe_(pipe),
      state_(state),
      asked_(asked),
      settings_(settings),
      answer_due_(Clock::now() + answer),
      write_timer_(executor),
      read_timer_(executor),
      watch_timer_(executor) {}

Task<> StreamConnection::run() { co_await (read() && write() && watch()); }

void StreamConnection::woken() {
  write_timer_.cancel();
  read_timer_.cancel();
}

Task<> StreamConnection::read() {
  for (;;) {
    const auto received = co_await connection_->receive();
    if (const auto* ended = std::get_if<Connection::Ended>(&received)) {
      lose(reason_of(*ended));
      if (ended->how == Connection::Ended::How::closed && ended->code == close_codes::normal)
        closed_ = true;
      break;
    }
    if (!receive(std::get<Connection::Message>(received)))
      lose("the service sent an invalid message");
    if (pipe_.held_up()) co_await await_user();
  }
  ended_ = true;
  write_timer_.cancel();
  watch_timer_.cancel();
}

// The service does not read what is still being written.
void StreamConnection::lose(std::string why) {
  if (why_lost_.empty()) why_lost_ = std::move(why);
  connection_->abort();
}

bool StreamConnection::receive(const Connection::Message& message) {
  const bool ack_pending = state_.order().ack_due().has_value();
  const bool valid =
      message.kind == Kind::text ? receive_text(message.text()) : receive_bytes(message.bytes);
  const bool ack_new = !ack_pending && state_.order().ack_due();
  if (ack_new) ack_limit_ = std::max(Clock::now(), *state_.order().ack_due()) + ack_delay;
  if (ack_new || !state_.outgoing().all_sent()) write_timer_.cancel();
  return valid;
}

bool StreamConnection::receive_text(std::string_view text) {
  auto message = parse_server_message(text);
  if (!message || !is_complete(*message)) return false;
  if (message->type == ServerMessage::Type::ready) return receive_ready(*message);
  const Verdict verdict = state_.receive(*message);
  if (verdict == Verdict::deliver) millrace::receive(pipe_, *message);
  if (verdict == Verdict::taken) lose("another connection has continued the stream");
  return verdict != Verdict::invalid;
}

bool StreamConnection::receive_bytes(Bytes bytes) {
  namespace cp = client_protocol;
  cp::Decoder decoder(bytes.size());
  const auto message = decoder.to_client(bytes);
  if (!message) return message.error() == WireError::unknown;  // a later version sends it: ignored
  if (!std::holds_alternative<cp::Result>(*message) &&
      !std::holds_alternative<cp::Message>(*message))
    return false;
  const Verdict verdict = state_.receive(*message);
  if (verdict == Verdict::deliver) millrace::receive(pipe_, *message);
  return verdict != Verdict::invalid;
}

bool StreamConnection::receive_ready(ServerMessage& ready) {
  if (ready_at_) return false;
  ready_at_ = Clock::now();
  write_timer_.cancel();
  if (asked_ == Asked::resume) {
    if (!state_.resume(ready, *ready_at_)) return false;
    pipe_.deliver(client_event::Resumed{*ready.resumed});
  } else {
    if (asked_ == Asked::open_to_resume) state_.open(ready, *ready_at_);
    millrace::receive(pipe_, ready);
  }
  return true;
}

// Reads nothing while the stream is held up; fails it if the user takes no event for `taking`.
Task<> StreamConnection::await_user() {
  while (pipe_.held_up()) {
    const Time due = pipe_.held_up_since() + settings_.taking;
    read_timer_.expires_at(due);
    const auto [woken] = co_await read_timer_.async_wait(no_throw);
    if (woken || due < pipe_.held_up_since() + settings_.taking) continue;
    pipe_.fail(StreamFailure::failed("slow_reader", "results were not taken in time"));
    connection_->abort();
  }
}

Task<> StreamConnection::write() {
  bool writable = co_await await_ready();
  std::vector<StreamPipe::Queued> queued;
  while (writable && !ended_) {
    const bool last = pipe_.abandoned();  // read before the queue: nothing is queued afterwards
    pipe_.take(queued);
    for (auto& entry : queued) state_.outgoing().add(std::move(entry));
    if (last && state_.outgoing().all_sent()) co_return co_await close();
    if (!state_.outgoing().next() && !is_ack_overdue()) {
      co_await await_queued();
      continue;
    }
    writable = co_await send_queued();
    // A write need not wait, and the user may queue without end: lets other streams run.
    co_await net::post(executor_, throwing);
  }
}

// Before `ready`, the client of a stream that may be resumed does not know what to send.
Task<bool> StreamConnection::await_ready() {
  const bool resumes = asked_ == Asked::resume;
  while (asked_ != Asked::open && !ready_at_ && !ended_) {
    write_timer_.expires_at(resumes ? answer_due_ : sent_ + settings_.keepalive);
    const auto [woken] = co_await write_timer_.async_wait(no_throw);
    if (woken) continue;
    if (resumes)
      lose("the service does not answer");
    else
      co_await send(Kind::binary, "");
  }
  co_return !ended_;
}

// Returns false if the connection has ended.
Task<bool> StreamConnection::send_queued() {
  while (const auto next = state_.outgoing().next()) {
    if (is_ack_due()) add_ack();  // in one write with the message
    bool connected = true;
    if (next->command) {
      const std::string text = to_json(*next->command);
      connected = co_await send(Kind::text, text);
    } else {
      connected = co_await send(Kind::binary, next->frames);
    }
    if (const auto* entry = state_.outgoing().sent()) pipe_.sent(*entry);
    if (!connected || ended_) co_return false;
  }
  if (!is_ack_overdue()) co_return true;
  add_ack();
  co_return co_await flush();
}

bool StreamConnection::is_ack_due() const {
  const auto due = state_.order().ack_due();
  return state_.has_token() && due && *due <= Clock::now();
}

// No other message has come to send it with, or none will.
bool StreamConnection::is_ack_overdue() const {
  return is_ack_due() && (ack_limit_ <= Clock::now() || state_.outgoing().has_ended());
}

void StreamConnection::add_ack() {
  const std::string text = to_json(client_message::Ack{state_.order().next()});
  state_.order().acked(Clock::now());
  add(Kind::text, text);
}

// The service treats a close as an end, and drops its results.
Task<> StreamConnection::close() {
  closed_ = true;
  connection_->close(close_codes::normal, "");
  co_await (connection_->flushed() && abort_on_timeout());
}

Task<> StreamConnection::abort_on_timeout() {
  write_timer_.expires_after(settings_.connect);
  while (!ended_) {
    const auto [woken] = co_await write_timer_.async_wait(no_throw);
    if (woken) continue;
    connection_->abort();
    co_return;
  }
}

// The service closes connections that send nothing for too long.
Task<> StreamConnection::await_queued() {
  const Time keepalive = sent_ + settings_.keepalive;
  const auto ack_due = state_.has_token() ? state_.order().ack_due() : std::nullopt;
  const Time ack = state_.outgoing().has_ended() ? ack_due.value_or(keepalive) : ack_limit_;
  write_timer_.expires_at(ack_due ? std::min(keepalive, ack) : keepalive);
  const auto [woken] = co_await write_timer_.async_wait(no_throw);
  if (!woken && Clock::now() >= keepalive) co_await send(Kind::binary, "");
}

// If the stream can be resumed, being wrong costs less than waiting.
Duration StreamConnection::longest_silence() const {
  return state_.can_resume() ? settings_.silence / 2 : settings_.silence;
}

// A lost host acknowledges nothing; TCP alone would retry for a quarter of an hour. A stream that
// is held up is not lost: `taking` limits it. A service that does not read still sends pings.
Task<> StreamConnection::watch() {
  Time alive_at = Clock::now();
  std::int64_t max_acknowledged = 0;  // bytes
  while (!ended_) {
    watch_timer_.expires_after(settings_.silence / checks);
    const auto [woken] = co_await watch_timer_.async_wait(no_throw);
    if (woken) continue;
    const auto waiting = static_cast<std::int64_t>(connection_->unacknowledged());
    const std::int64_t acknowledged = written_ - waiting;
    if (waiting == 0 || acknowledged > max_acknowledged || pipe_.held_up()) alive_at = Clock::now();
    max_acknowledged = std::max(max_acknowledged, acknowledged);
    alive_at = std::max(alive_at, connection_->last_received());
    if (Clock::now() - alive_at > longest_silence()) lose("the service's host no longer responds");
  }
}

Task<bool> StreamConnection::send(Kind kind, std::string_view message) {
  add(kind, message);
  co_return co_await flush();
}

void StreamConnection::add(Kind kind, std::string_view message) {
  connection_->add(kind, message);
  unwritten_ += static_cast<std::int64_t>(message.size() + frame_overhead);
}

Task<bool> StreamConnection::flush() {
  const bool flushed = co_await connection_->flushed();
  sent_ = Clock::now();
  written_ += std::exchange(unwritten_, 0);
  co_return flushed;
}

}  // namespace millrace
