// SPDX-License-Identifier: Apache-2.0
#include "load/clients/websocket_client.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "chunker/row.h"
#include "load/clients/told_message.h"
#include "schemas/client_codec.h"
#include "schemas/server_messages.h"
#include "transport/net/limits.h"

namespace millrace::load {

namespace {

Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }
std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The greatest answer to an upgrade.
constexpr std::size_t max_answer = 16 << 10;

}  // namespace

WebSocketClient::WebSocketClient(FileDescriptor socket, std::string request, std::uint32_t place,
                                 WebSocketScratch& scratch)
    : socket_(std::move(socket)), place_(place), scratch_(scratch), unsent_(std::move(request)) {}

bool WebSocketClient::send(Bytes frames) {
  full_ = !unsent_.empty();
  if (!full_) write(Opcode::binary, frames);
  return !full_;
}

void WebSocketClient::end() { write(Opcode::text, bytes_of(R"({"type":"end"})")); }

void WebSocketClient::write(Opcode opcode, Bytes payload) {
  auto& message = scratch_.message;
  if (message.size() < payload.size() + longest_header)
    message.resize(payload.size() + longest_header);
  const std::size_t size = scratch_.frames.write(message, opcode, payload);
  write(Bytes(message).first(size));
}

// An error of the socket is seen by who reads.
void WebSocketClient::write(Bytes bytes) {
  if (unsent_.empty()) {
    const auto sent =
        ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  unsent_.append(text_of(bytes));
}

bool WebSocketClient::turn(bool readable, bool writable, ClientSink& sink) {
  if (writable) state_ == State::connecting ? connected(sink) : flush(sink);
  if (readable && state_ != State::over) read(sink);
  return state_ != State::over;
}

void WebSocketClient::connected(ClientSink& sink) {
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return fail(std::strerror(error), sink);
  state_ = State::upgrading;
  flush(sink);
}

void WebSocketClient::flush(ClientSink& sink) {
  const auto sent =
      ::send(socket_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent > 0) unsent_.erase(0, static_cast<std::size_t>(sent));
  if (unsent_.empty() && std::exchange(full_, false)) sink.has_room(place_);
}

void WebSocketClient::read(ClientSink& sink) {
  auto& arrived = scratch_.arrived;
  const auto size = ::recv(socket_.get(), arrived.data(), arrived.size(), MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0) {
    if (state_ != State::told) return fail(why_.empty() ? "it hung up" : why_, sink);
    state_ = State::over;
    return sink.closed(place_, frames_, rows_, Clock::now());
  }
  const Time now = Clock::now();
  Bytes bytes = Bytes(arrived).first(static_cast<std::size_t>(size));
  if (!unread_.empty()) bytes = bytes_of(unread_.append(text_of(bytes)));
  while (state_ != State::over) {
    const std::size_t taken = take(bytes, now, sink);
    if (taken == 0) break;
    bytes = bytes.subspan(taken);
  }
  if (bytes.empty())
    unread_.clear();
  else
    unread_ = std::string(text_of(bytes));
}

std::size_t WebSocketClient::take(Bytes bytes, Time now, ClientSink& sink) {
  if (state_ == State::upgrading) return take_upgrade(bytes, now, sink);
  const auto frame = read_frame(bytes, longest_told);
  if (!frame) return 0;
  if (frame->size == 0 || !frame->final) {
    fail("what it sent is not the protocol", sink);
    return bytes.size();
  }
  take_frame(*frame, now, sink);
  return frame->size;
}

std::size_t WebSocketClient::take_upgrade(Bytes bytes, Time now, ClientSink& sink) {
  constexpr std::string_view http = "HTTP/1.1 ", end = "\r\n\r\n";
  const std::string_view text = text_of(bytes);
  const auto length = text.find(end);
  if (length == text.npos) {
    if (text.size() > max_answer) fail("what it answered is not the protocol", sink);
    return 0;
  }
  if (!text.starts_with(http)) {
    fail("what it answered is not the protocol", sink);
    return bytes.size();
  }
  if (const std::string_view status = text.substr(http.size(), 3); status != "101") {
    state_ = State::over;
    sink.refused(place_, status, now);
    return bytes.size();
  }
  state_ = State::open;
  sink.opened(place_, now);
  return length + end.size();
}

void WebSocketClient::take_frame(const ServerFrame& frame, Time now, ClientSink& sink) {
  switch (frame.opcode) {
    case Opcode::text: return take_text(text_of(frame.payload), now, sink);
    case Opcode::binary: return take_result(frame.payload, now, sink);
    case Opcode::ping: return write(Opcode::pong, frame.payload);
    case Opcode::pong: return;
    case Opcode::close: break;
    default: return fail("what it sent is not the protocol", sink);
  }
  if (state_ != State::told) return fail(why_.empty() ? "it closed" : why_, sink);
  write(Opcode::close, frame.payload);
  state_ = State::over;
  sink.closed(place_, frames_, rows_, now);
}

void WebSocketClient::take_result(Bytes message, Time now, ClientSink& sink) {
  client_protocol::Decoder decoder(longest_told);
  const auto decoded = decoder.to_client(message);
  const auto* result = decoded ? std::get_if<client_protocol::Result>(&*decoded) : nullptr;
  if (!result) return fail("what it sent is not the protocol", sink);
  sink.told(place_,
            {result->seq, result->begin, result->end, (result->flags & flag::gap) != 0, false,
             text_of(result->data)},
            now);
}

void WebSocketClient::take_text(std::string_view text, Time now, ClientSink& sink) {
  if (const auto told = read_told(text)) return sink.told(place_, *told, now);
  const auto message = parse_server_message(text);
  if (!message) return fail("what it sent is not the protocol", sink);
  using Type = ServerMessage::Type;
  switch (message->type) {
    case Type::result:
      return sink.told(
          place_,
          {message->seq, message->begin, message->end, (message->flags & flag::gap) != 0,
           message->kind == Answer::Kind::error, message->data},
          now);
    case Type::rejected: return sink.rejected(place_, message->frames);
    case Type::error: why_ = message->code; return;
    case Type::closed:
      frames_ = message->frames;
      rows_ = message->chunks;
      state_ = State::told;
      return;
    default: return;
  }
}

void WebSocketClient::fail(std::string_view why, ClientSink& sink) {
  const bool was_open = state_ != State::connecting && state_ != State::upgrading;
  state_ = State::over;
  if (was_open)
    sink.broken(place_, why, Clock::now());
  else
    sink.refused(place_, why, Clock::now());
}

}  // namespace millrace::load
