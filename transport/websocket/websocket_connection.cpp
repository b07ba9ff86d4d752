// SPDX-License-Identifier: Apache-2.0
#include "transport/websocket/websocket_connection.h"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>

#include <array>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <utility>

#include "transport/net/turns.h"
#include "transport/websocket/frame_output.h"
#include "transport/websocket/read_ahead.h"

namespace millrace {
namespace {

class WebSocketConnection final : public Connection {
 public:
  WebSocketConnection(Role role, StreamSocket socket, std::string rest, std::size_t longest)
      : role_(role),
        longest_(longest),
        socket_(std::move(socket)),
        turn_(socket_.tcp().get_executor()),
        read_(rest.size()),
        ahead_(socket_.tcp().get_executor().context(), std::move(rest)),
        reader_(role, longest, ReadBuffer::size),
        output_(role) {}

  std::optional<Received> next() override;
  Task<> readable() override;
  bool is_turn_over() override;
  void add(Kind kind, std::string_view bytes) override;
  void close(std::uint16_t code, std::string_view reason) override { output_.close(code, reason); }
  Flushed flush() override;
  Task<> writable() override;
  Task<> linger() override;
  void abort() override;

  std::optional<Time> peer_closed_since() const override { return peer_closed_since_; }
  bool is_reset() override;
  std::uint64_t controls() const override { return controls_; }
  std::uint64_t examined() const override { return read_ - waiting(); }
  std::size_t unexamined() override;
  std::size_t unacknowledged() override;
  Time last_received() const override { return last_received_; }
  std::optional<Time> assembling_since() const override { return incomplete_since_; }
  std::optional<Time> sending_since() const override {
    return sending_ ? std::optional(progress_) : std::nullopt;
  }

 private:
  // Handle an event of the reader. Return what next() is to return, if anything.
  std::optional<Received> on_event(const MessageReader::Message& message);
  std::optional<Received> on_event(const MessageReader::Ping& ping);
  std::optional<Received> on_event(const MessageReader::Pong&) { return std::nullopt; }
  std::optional<Received> on_event(const MessageReader::Close& close);
  std::optional<Received> on_event(const MessageReader::Fault& fault);
  std::optional<Received> end(Ended ended, std::uint16_t code);
  Ended lost(boost::system::error_code error) const;
  std::optional<Received> finish();
  bool write_pongs();
  Task<> wait(Socket::wait_type what);
  Task<> wait_for_first_input();
  // Bytes that were read and wait for the next turn.
  std::size_t waiting() const { return turn_.waits() ? ahead_.size() : 0; }

  const Role role_;
  const std::size_t longest_;
  StreamSocket socket_;
  Turns::Turn turn_;
  std::uint64_t controls_ = 0;  // control frames
  std::uint64_t read_;          // bytes, also those that came with the upgrade
  ReadAhead ahead_;
  MessageReader reader_;
  FrameOutput output_;
  boost::system::error_code wait_error_;  // ignored: the next operation fails with it too
  // The socket may have unread bytes. TLS may have some of the record with the end of the upgrade.
  bool may_read_ = socket_.buffered() > 0;
  bool yields_ = false;           // readable() lets other connections continue first
  bool is_new_ = true;            // it has not waited for input yet
  std::optional<Ended> lost_;     // returned by next() in the next turn
  std::optional<Ended> ending_;   // the same, once our close is written
  std::uint16_t close_code_ = 0;  // code of our close
  Time last_received_ = Clock::now();
  std::optional<Time> incomplete_since_;
  bool sending_ = false;  // the writer waits
  Time progress_{};       // last accepted byte, or start of the writer's wait
  std::optional<Time> peer_closed_since_;
};

std::optional<Connection::Received> WebSocketConnection::next() {
  if (lost_) return *lost_;
  if (ending_) return finish();
  if (!socket_.tcp().is_open()) return Ended{};
  if (!write_pongs()) return std::nullopt;
  while (!yields_ && (ahead_.empty() || !is_turn_over())) {
    if (const auto event = reader_.next(ahead_.unread())) {
      last_received_ = Clock::now();
      turn_.begin(last_received_);
      if (!reader_.within_message()) incomplete_since_.reset();
      controls_ += !std::holds_alternative<MessageReader::Message>(*event);
      auto received = std::visit([this](const auto& one) { return on_event(one); }, *event);
      if (received) return received;
      continue;
    }
    if (!std::exchange(may_read_, false)) break;
    const std::size_t before = ahead_.size();
    const auto error = ahead_.fill(socket_);
    read_ += ahead_.size() - before;
    may_read_ = socket_.buffered() > 0;  // readable() would not notice these bytes
    if (error && error != net::error::would_block) {
      lost_ = lost(error);
      yields_ = true;
    }
  }
  write_pongs();
  return std::nullopt;
}

// While our pongs or our close cannot be written, the peer is not read. Output of a waiting writer
// does not stop reading: pongs are queued after it. A turn that is over ends in any case: the rest
// of a message, which was read, does not wait for pongs.
Task<> WebSocketConnection::readable() {
  reader_.forget_message();
  if (std::exchange(yields_, false)) return turn_.next();
  if (!output_.empty() && (ending_ || !sending_)) return wait(socket_.write_awaits());
  turn_.end();
  const bool incomplete = reader_.within_message() || !ahead_.empty();
  if (incomplete && !incomplete_since_) incomplete_since_ = Clock::now();
  ahead_.shrink();
  may_read_ = true;
  if (std::exchange(is_new_, false)) return wait_for_first_input();
  return wait(socket_.read_awaits());
}

bool WebSocketConnection::is_turn_over() {
  const Time now = Clock::now();
  turn_.begin(now);
  yields_ |= turn_.is_over(now);
  return yields_;
}

// False if the socket is full. If the writer waits, it writes the pongs after its output.
bool WebSocketConnection::write_pongs() { return sending_ || flush() != Flushed::later; }

// Clients that connect at once also send at once. Established connections come before them.
Task<> WebSocketConnection::wait_for_first_input() {
  co_await wait(socket_.read_awaits());
  co_await turn_.next();
}

// Not a coroutine: that would allocate one more frame for each wait.
Task<> WebSocketConnection::wait(Socket::wait_type what) {
  return socket_.tcp().async_wait(what, net::redirect_error(throwing, wait_error_));
}

// Writes pongs now, because the caller may take a while to process the message.
std::optional<Connection::Received> WebSocketConnection::on_event(
    const MessageReader::Message& message) {
  write_pongs();
  return Message{.kind = message.is_text ? Kind::text : Kind::binary,
                 .bytes = message.bytes,
                 .arrived = last_received_};
}

std::optional<Connection::Received> WebSocketConnection::on_event(const MessageReader::Ping& ping) {
  output_.pong(text_in(ping.payload));
  return std::nullopt;
}

std::optional<Connection::Received> WebSocketConnection::on_event(
    const MessageReader::Close& close) {
  return end({.how = Ended::How::closed, .code = close.code},
             close.code == close_codes::none ? close_codes::normal : close.code);
}

std::optional<Connection::Received> WebSocketConnection::on_event(
    const MessageReader::Fault& fault) {
  return end(
      {.how = fault.code == close_codes::too_big ? Ended::How::too_big : Ended::How::protocol},
      fault.code);
}

// The reader yields once before the close, so that messages queued by the writer are sent first.
std::optional<Connection::Received> WebSocketConnection::end(Ended ended, std::uint16_t code) {
  ending_ = ended;
  close_code_ = code;
  yields_ = true;
  return std::nullopt;
}

Connection::Ended WebSocketConnection::lost(boost::system::error_code error) const {
  const bool whole = ahead_.empty() && !reader_.within_message();
  return {.how = error == net::error::eof && whole ? Ended::How::half_closed : Ended::How::lost};
}

// The server ends the connection first (RFC 6455, 7.1.1). linger() waits until the peer ends it
// too: with unread bytes, a close of the socket would reset the connection, and a peer that is
// still sending would lose the close frame.
std::optional<Connection::Received> WebSocketConnection::finish() {
  output_.close(close_code_, ending_->how == Ended::How::too_big
                                 ? "at most " + std::to_string(longest_) + " bytes"
                                 : std::string());
  if (flush() == Flushed::later) return std::nullopt;
  if (role_ == Role::server) socket_.shutdown_send();
  return *ending_;
}

void WebSocketConnection::add(Kind kind, std::string_view bytes) {
  output_.add(kind == Kind::text     ? Opcode::text
              : kind == Kind::binary ? Opcode::binary
                                     : Opcode::ping,
              bytes);
}

// Output to a peer that has closed the connection is dropped instead of failing: messages that the
// peer sent before must still be read.
Connection::Flushed WebSocketConnection::flush() {
  while (!output_.empty()) {
    boost::system::error_code error;
    const std::size_t size =
        peer_closed_since_ ? 0 : socket_.write_some(output_.unwritten(), error);
    if (error == net::error::connection_reset || error == net::error::broken_pipe)
      peer_closed_since_ = Clock::now();
    if (peer_closed_since_) {
      output_.drop();
    } else if (error && error != net::error::would_block) {
      output_.drop();
      return Flushed::failed;
    } else {
      const bool all = output_.written(size);
      if (size > 0) progress_ = Clock::now();
      if (!all) return Flushed::later;
    }
  }
  sending_ = false;
  return Flushed::all;
}

Task<> WebSocketConnection::writable() {
  if (!std::exchange(sending_, true)) progress_ = Clock::now();
  return wait(socket_.write_awaits());
}

Task<> WebSocketConnection::linger() {
  std::array<char, 1024> dropped;
  boost::system::error_code over;
  while (!over) {
    const auto [error, size] =
        co_await socket_.tcp().async_read_some(net::buffer(dropped), no_throw);
    over = error;
  }
}

void WebSocketConnection::abort() { socket_.close(); }

bool WebSocketConnection::is_reset() {
  pollfd state{.fd = socket_.tcp().native_handle(), .events = 0, .revents = 0};
  return ::poll(&state, 1, 0) > 0;
}

// While pongs wait to be written, the reader does not continue.
std::size_t WebSocketConnection::unexamined() {
  boost::system::error_code closed;
  return may_read_ || turn_.waits()
             ? waiting() + socket_.buffered() + socket_.tcp().available(closed)
             : 0;
}

std::size_t WebSocketConnection::unacknowledged() {
  int bytes = 0;
  ::ioctl(socket_.tcp().native_handle(), SIOCOUTQ, &bytes);
  return static_cast<std::size_t>(bytes);
}

}  // namespace

std::unique_ptr<Connection> open_websocket(Role role, StreamSocket socket, std::string rest,
                                           std::size_t longest) {
  return std::make_unique<WebSocketConnection>(role, std::move(socket), std::move(rest), longest);
}

}  // namespace millrace
