// SPDX-License-Identifier: Apache-2.0
#include "load/clients/websocket_client.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "transport/net/limits.h"

namespace millrace::load {

namespace {

// Maximum bytes of the answer to an upgrade.
constexpr std::size_t max_answer = 16 << 10;

}  // namespace

WebSocketClient::WebSocketClient(FileDescriptor socket, std::unique_ptr<TlsSession> tls,
                                 std::string request, ClientSession& session,
                                 WebSocketScratch& scratch)
    : socket_(std::move(socket)),
      tls_(std::move(tls)),
      session_(session),
      scratch_(scratch),
      unsent_(std::move(request)) {}

bool WebSocketClient::send(Bytes frames) {
  full_ = !unsent_.empty() || !session_.is_connected() || !session_.has_room();
  if (full_)
    cut_.reset();
  else
    session_.send(frames, *this);
  return !full_;
}

void WebSocketClient::cut(const Cut& cut) {
  if (cut.part) {
    cut_ = cut;
    return;
  }
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  if (cut.resets) ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  socket_ = FileDescriptor();
  state_ = State::lost;
}

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

void WebSocketClient::write(Opcode opcode, std::string_view payload) {
  if (is_over()) return;
  close_sent_ = close_sent_ || opcode == Opcode::close;
  scratch_.message.clear();
  append_frame(scratch_.message, opcode, payload, scratch_.keys.next());
  std::string_view bytes = scratch_.message;
  if (cut_) {
    transmit(
        bytes_in(bytes.substr(0, static_cast<std::size_t>(*cut_->part * double(bytes.size())))));
    return cut({.resets = cut_->resets});
  }
  if (unsent_.empty()) bytes.remove_prefix(transmit(bytes_in(bytes)));
  unsent_.append(bytes);
}

bool WebSocketClient::turn(bool readable, bool writable, ClientSink& sink) {
  if (writable) state_ == State::connecting ? connected(sink) : flush(sink);
  if ((readable || tls_) && !is_over() && state_ != State::connecting) read(sink);
  if (!is_over() && !unsent_.empty() && write_awaits_input()) flush(sink);
  return !is_over();
}

void WebSocketClient::connected(ClientSink& sink) {
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return lose(std::strerror(error), sink);
  state_ = State::upgrading;
  flush(sink);
}

void WebSocketClient::flush(ClientSink& sink) {
  unsent_.erase(0, transmit(bytes_in(unsent_)));
  report_room(sink);
}

void WebSocketClient::report_room(ClientSink& sink) {
  if (full_ && unsent_.empty() && session_.is_connected() && session_.has_room()) {
    full_ = false;
    sink.writable(session_.client());
  }
}

void WebSocketClient::read(ClientSink& sink) {
  auto& arrived = scratch_.arrived;
  const auto size = receive(arrived);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0) {
    if (session_.has_ended()) return close(Clock::now(), sink);
    const std::string lost = tls_ ? tls_->failure() : "";
    return lose(lost.empty() ? "the service disconnected" : lost, sink);
  }
  const Time now = Clock::now();
  MutableBytes bytes = MutableBytes(arrived).first(static_cast<std::size_t>(size));
  std::string partial = std::exchange(unread_, {});
  if (!partial.empty()) bytes = std::as_writable_bytes(std::span(partial.append(text_in(bytes))));
  if (state_ == State::upgrading) bytes = read_upgrade(bytes, now, sink);
  while (state_ == State::open) {
    const auto event = reader_.next(bytes);
    if (!event) break;
    handle(*event, now, sink);
  }
  if (state_ == State::open) report_room(sink);
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
    refused(status, now, sink);
  } else {
    state_ = State::open;
    session_.start(now, sink);
  }
  return bytes.subspan(length + end.size());
}

void WebSocketClient::refused(std::string_view status, Time now, ClientSink& sink) {
  const bool resumes = session_.can_resume();
  state_ = resumes && session_.outlasts(status) ? State::lost : State::over;
  if (!resumes)
    sink.refused(session_.client(), status, now);
  else if (state_ == State::over)
    sink.broken(session_.client(), "not resumed: " + std::string(status), now);
}

void WebSocketClient::handle(const MessageReader::Event& event, Time now, ClientSink& sink) {
  if (const auto* message = std::get_if<MessageReader::Message>(&event)) {
    if (!session_.received(message->is_text, message->bytes, now, sink, *this))
      fail("invalid message from the service", sink);
  } else if (const auto* ping = std::get_if<MessageReader::Ping>(&event)) {
    write(Opcode::pong, text_in(ping->payload));
  } else if (const auto* closed = std::get_if<MessageReader::Close>(&event)) {
    handle_close(*closed, now, sink);
  } else if (std::holds_alternative<MessageReader::Fault>(event)) {
    fail("invalid message from the service", sink);
  }
}

void WebSocketClient::handle_close(const MessageReader::Close& closed, Time now, ClientSink& sink) {
  const std::array code{static_cast<std::byte>(closed.code >> 8),
                        static_cast<std::byte>(closed.code)};
  if (session_.has_ended()) {
    if (!close_sent_)
      write(Opcode::close, closed.code == close_codes::none ? "" : text_in(Bytes(code)));
    return close(now, sink);
  }
  std::string why = "the service closed the connection";
  if (closed.code != close_codes::none) why += ": " + std::to_string(closed.code);
  if (!closed.reason.empty()) why.append(" ").append(closed.reason);
  closed.code == close_codes::normal ? fail(why, sink) : lose(why, sink);
}

void WebSocketClient::close(Time now, ClientSink& sink) {
  state_ = State::over;
  sink.closed(session_.client(), session_.totals(), now);
}

void WebSocketClient::lose(std::string_view why, ClientSink& sink) {
  if (!session_.can_resume()) return fail(why, sink);
  state_ = State::lost;
}

// The service's own description of an error has precedence over `why`.
void WebSocketClient::fail(std::string_view why, ClientSink& sink) {
  state_ = State::over;
  if (!session_.why().empty()) why = session_.why();
  if (session_.is_open())
    sink.broken(session_.client(), why, Clock::now());
  else
    sink.refused(session_.client(), why, Clock::now());
}

}  // namespace millrace::load
