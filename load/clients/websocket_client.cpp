// SPDX-License-Identifier: Apache-2.0
#include "load/clients/websocket_client.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "chunker/row.h"
#include "load/clients/received_result.h"
#include "schemas/client_codec.h"
#include "schemas/server_messages.h"

namespace millrace::load {

namespace {

// Maximum bytes of the answer to an upgrade.
constexpr std::size_t max_answer = 16 << 10;

}  // namespace

WebSocketClient::WebSocketClient(FileDescriptor socket, std::unique_ptr<TlsSession> tls,
                                 std::string request, std::uint32_t client,
                                 WebSocketScratch& scratch)
    : socket_(std::move(socket)),
      tls_(std::move(tls)),
      client_(client),
      scratch_(scratch),
      unsent_(std::move(request)) {}

bool WebSocketClient::send(Bytes frames) {
  full_ = !unsent_.empty();
  if (!full_) write(Opcode::binary, frames);
  return !full_;
}

void WebSocketClient::end() { write(Opcode::text, bytes_in(R"({"type":"end"})")); }

// Returns the number of bytes sent. Ignores errors: the next read returns them.
std::size_t WebSocketClient::transmit(Bytes bytes) {
  boost::system::error_code ignored;
  if (tls_) return tls_->write(bytes, ignored);
  const auto sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  return sent > 0 ? static_cast<std::size_t>(sent) : 0;
}

// As recv(). A record of TLS fits into the buffer, so that none of it waits in the session.
ssize_t WebSocketClient::receive(MutableBytes into) {
  if (!tls_) return ::recv(socket_.get(), into.data(), into.size(), MSG_DONTWAIT);
  boost::system::error_code error;
  const std::size_t size = tls_->read(into, error);
  errno = error == net::error::would_block ? EAGAIN : EIO;
  return error && error != net::error::eof ? -1 : static_cast<ssize_t>(size);
}

void WebSocketClient::write(Opcode opcode, Bytes payload) {
  scratch_.message.clear();
  append_frame(scratch_.message, opcode, text_in(payload), scratch_.keys.next());
  std::string_view bytes = scratch_.message;
  if (unsent_.empty()) bytes.remove_prefix(transmit(bytes_in(bytes)));
  unsent_.append(bytes);
}

bool WebSocketClient::turn(bool readable, bool writable, ClientSink& sink) {
  if (writable) state_ == State::connecting ? connected(sink) : flush(sink);
  if ((readable || tls_) && state_ != State::over && state_ != State::connecting) read(sink);
  if (!unsent_.empty() && write_awaits_input()) flush(sink);
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
  unsent_.erase(0, transmit(bytes_in(unsent_)));
  if (unsent_.empty() && std::exchange(full_, false)) sink.writable(client_);
}

void WebSocketClient::read(ClientSink& sink) {
  auto& arrived = scratch_.arrived;
  const auto size = receive(arrived);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0) {
    if (state_ != State::closing) {
      if (tls_ && why_.empty()) why_ = tls_->failure();
      return fail(why_.empty() ? "the service disconnected" : why_, sink);
    }
    state_ = State::over;
    return sink.closed(client_, frames_, rows_, Clock::now());
  }
  const Time now = Clock::now();
  MutableBytes bytes = MutableBytes(arrived).first(static_cast<std::size_t>(size));
  std::string partial = std::exchange(unread_, {});
  if (!partial.empty()) bytes = std::as_writable_bytes(std::span(partial.append(text_in(bytes))));
  if (state_ == State::upgrading) bytes = read_upgrade(bytes, now, sink);
  while (state_ == State::open || state_ == State::closing) {
    const auto event = reader_.next(bytes);
    if (!event) break;
    handle(*event, now, sink);
  }
  unread_ = text_in(bytes);
}

// Returns the bytes after the answer.
MutableBytes WebSocketClient::read_upgrade(MutableBytes bytes, Time now, ClientSink& sink) {
  constexpr std::string_view http = "HTTP/1.1 ", end = "\r\n\r\n";
  const std::string_view text = text_in(bytes);
  const auto length = text.find(end);
  if (length == text.npos) {
    if (text.size() > max_answer) fail("invalid answer to the upgrade", sink);
    return bytes;
  }
  if (!text.starts_with(http)) {
    fail("invalid answer to the upgrade", sink);
  } else if (const std::string_view status = text.substr(http.size(), 3); status != "101") {
    state_ = State::over;
    sink.refused(client_, status, now);
  } else {
    state_ = State::open;
    sink.opened(client_, now);
  }
  return bytes.subspan(length + end.size());
}

void WebSocketClient::handle(const MessageReader::Event& event, Time now, ClientSink& sink) {
  if (const auto* message = std::get_if<MessageReader::Message>(&event)) {
    if (message->is_text) return handle_text(text_in(message->bytes), now, sink);
    return handle_result(message->bytes, now, sink);
  }
  if (const auto* ping = std::get_if<MessageReader::Ping>(&event))
    return write(Opcode::pong, ping->payload);
  if (const auto* close = std::get_if<MessageReader::Close>(&event))
    return handle_close(close->code, now, sink);
  if (std::holds_alternative<MessageReader::Fault>(event))
    fail("invalid message from the service", sink);
}

void WebSocketClient::handle_close(std::uint16_t code, Time now, ClientSink& sink) {
  if (state_ != State::closing)
    return fail(why_.empty() ? "the service closed the connection" : why_, sink);
  const std::array answer{static_cast<std::byte>(code >> 8), static_cast<std::byte>(code)};
  write(Opcode::close, code == 1005 ? Bytes() : Bytes(answer));
  state_ = State::over;
  sink.closed(client_, frames_, rows_, now);
}

void WebSocketClient::handle_result(Bytes message, Time now, ClientSink& sink) {
  client_protocol::Decoder decoder(max_service_message);
  const auto decoded = decoder.to_client(message);
  if (decoded)
    if (const auto* worker = std::get_if<client_protocol::Message>(&*decoded))
      return sink.message(client_, worker->number);
  const auto* result = decoded ? std::get_if<client_protocol::Result>(&*decoded) : nullptr;
  if (!result) return fail("invalid message from the service", sink);
  sink.received(client_,
                {result->seq, result->begin, result->end, (result->flags & flag::gap) != 0, false,
                 text_in(result->data)},
                now);
}

void WebSocketClient::handle_text(std::string_view text, Time now, ClientSink& sink) {
  if (const auto result = read_result(text)) return sink.received(client_, *result, now);
  const auto message = parse_server_message(text);
  if (!message) return fail("invalid message from the service", sink);
  using Type = ServerMessage::Type;
  switch (message->type) {
    case Type::result:
      return sink.received(
          client_,
          {message->seq, message->begin, message->end, (message->flags & flag::gap) != 0,
           message->kind == Answer::Kind::error, message->data},
          now);
    case Type::message: return sink.message(client_, message->number);
    case Type::rejected: return sink.rejected(client_, message->frames);
    case Type::error: why_ = message->code; return;
    case Type::closed:
      frames_ = message->frames;
      rows_ = message->chunks;
      state_ = State::closing;
      return;
    default: return;
  }
}

void WebSocketClient::fail(std::string_view why, ClientSink& sink) {
  const bool was_open = state_ != State::connecting && state_ != State::upgrading;
  state_ = State::over;
  if (was_open)
    sink.broken(client_, why, Clock::now());
  else
    sink.refused(client_, why, Clock::now());
}

}  // namespace millrace::load
