// SPDX-License-Identifier: Apache-2.0
#include "load/protocols/resuming_session.h"

#include <utility>
#include <variant>

#include "load/protocols/received_result.h"
#include "schemas/json_commands.h"
#include "transport/net/limits.h"
#include "transport/websocket/stream_target.h"
#include "transport/websocket/upgrade.h"

namespace millrace::load {

namespace {

namespace cp = client_protocol;
using Verdict = ResumingStream::Verdict;

// As the client library's default, and the service's.
constexpr std::chrono::seconds window{15};

}  // namespace

ResumingSession::ResumingSession(std::uint32_t client, StreamRequest request)
    : NativeSession(client),
      request_(std::move(request)),
      state_(request_.format == "opus", request_.options),
      reconnects_(window, client) {}

bool ResumingSession::can_resume() const {
  return is_open() && state_.can_resume() && !has_ended() && why().empty();
}

std::optional<Time> ResumingSession::next_connection(Time now) {
  if (std::exchange(connected_, false)) {
    reconnects_.lost(now, state_.has_progressed());
    ack_due_ = false;  // the request has the number
    conflicted_ = false;
  }
  return reconnects_.next(now);
}

RequestedStream ResumingSession::resuming_request() {
  request_.resumption = state_.resumption();
  return {stream_target(request_),
          std::string(subprotocol) + ", resume." + request_.resumption->token};
}

// A conflict may come from the connection before, which the service has not seen to end.
bool ResumingSession::outlasts(std::string_view status) {
  if (status == "409") return !std::exchange(conflicted_, true);
  return status == "429" || status.starts_with('5');
}

void ResumingSession::send(Bytes frames, FrameWriter& to) { add(std::string(text_in(frames)), to); }

void ResumingSession::commit(Time due, FrameWriter& to) {
  add(ClientMessage(client_message::Flush{add_commit(due)}), to);
}

void ResumingSession::end(FrameWriter& to) {
  ends_ = true;
  add(ClientMessage(client_message::End{}), to);
}

void ResumingSession::add(QueuedInput input, FrameWriter& to) {
  state_.outgoing().add(std::move(input));
  write(to);
}

void ResumingSession::write(FrameWriter& to) {
  if (!connected_) return;
  ResendBuffer& outgoing = state_.outgoing();
  // With other messages, it costs the service no read of its own.
  if (ack_due_ && (outgoing.next() || ends_)) {
    ack_due_ = false;
    to.write(Opcode::text, to_json(client_message::Ack{state_.order().next()}));
  }
  for (; const auto next = outgoing.next(); outgoing.sent()) {
    if (next->command)
      to.write(Opcode::text, to_json(*next->command));
    else
      to.write(Opcode::binary, next->frames);
  }
}

bool ResumingSession::received(bool is_text, Bytes message, Time now, ClientSink& sink,
                               FrameWriter& to) {
  if (!take(is_text, message, now, sink)) {
    if (why_.empty()) why_ = "invalid message from the service";
    return false;
  }
  MessageOrder& order = state_.order();
  if (const auto due = order.ack_due(); due && *due <= now && state_.can_resume()) {
    order.acked(now);
    ack_due_ = true;
  }
  write(to);  // `ready` and each acknowledgement may allow more
  return true;
}

// False if the message is invalid.
bool ResumingSession::take(bool is_text, Bytes bytes, Time now, ClientSink& sink) {
  if (const auto read = is_text ? read_numbered_result(text_in(bytes)) : std::nullopt) {
    const ReceivedResult& result = read->result;
    const Verdict verdict = state_.receive(cp::Result{.seq = result.seq, .number = read->number});
    if (verdict == Verdict::deliver) sink.received(client(), result, now);
    return verdict != Verdict::invalid;
  }
  const auto take = [&](const auto& message) {
    const Verdict verdict = state_.receive(message);
    return verdict == Verdict::drop || (verdict == Verdict::deliver && report(message, now, sink));
  };
  if (is_text) {
    const auto message = parse_server_message(text_in(bytes));
    if (message && message->type == ServerMessage::Type::ready)
      return take_ready(*message, now, sink);
    return message && take(*message);
  }
  cp::Decoder decoder(max_service_message);
  const auto message = decoder.to_client(bytes);
  return message && take(*message);
}

bool ResumingSession::take_ready(const ServerMessage& ready, Time now, ClientSink& sink) {
  if (connected_) return false;
  if (is_open()) {
    if (!state_.resume(ready, now)) return false;
    sink.resumed(client(), *ready.resumed, now);
  } else {
    state_.open(ready, now);
    open(now, sink);
  }
  connected_ = true;
  reconnects_.opened(now);
  return true;
}

}  // namespace millrace::load
