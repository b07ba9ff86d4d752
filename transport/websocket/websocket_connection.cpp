// SPDX-License-Identifier: Apache-2.0
#include "transport/websocket/websocket_connection.h"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <charconv>
#include <span>

#include "schemas/text.h"
#include "transport/net/limits.h"
#include "transport/net/wakeup.h"
#include "transport/websocket/gathering_socket.h"
#include "transport/websocket/random_keys.h"

namespace millrace {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
namespace websocket = beast::websocket;

// Without compression: it is never negotiated, and its code and state are left out.
using WebSocket = websocket::stream<GatheringSocket, false>;

// Beast reads on for a moment when a message of the greatest length is followed by an empty final
// fragment.
constexpr std::size_t slack = 1024;
// A buffer larger than this is given back when messages have become much smaller.
constexpr std::size_t kept = 8 * 1024;
// A client that sends many small ones at once does not hold up the others of its thread.
constexpr unsigned messages_per_turn = 64;
constexpr net::use_awaitable_t<Executor> awaited{};
// Beast takes higher ones for good, and sends them back.
constexpr std::uint16_t last_close_code = 4999;
constexpr std::uint16_t close_protocol = 1002;
constexpr std::uint16_t close_bad_text = 1007;
constexpr std::uint16_t close_too_big = 1009;

// Masked with `key`, or not at all.
std::string close_frame(std::uint16_t code, std::string_view reason,
                        std::optional<RandomKeys::Key> key) {
  constexpr std::size_t most = 120;  // of a control frame's 125 bytes
  std::string payload{static_cast<char>(code >> 8), static_cast<char>(code)};
  payload += reason.substr(0, most);
  std::string frame;
  FrameHead::append(frame, 0x88, payload.size(), key);
  if (key) mask(std::as_writable_bytes(std::span(payload)), *key);
  return frame += payload;
}

class WebSocketConnection final : public Connection {
 public:
  WebSocketConnection(beast::role_type role, Socket socket, std::string rest, std::size_t longest)
      : role_(role),
        longest_(longest),
        ended_(socket.get_executor()),
        socket_(std::move(socket), role, std::move(rest)),
        buffer_(longest + slack) {
    socket_.read_message_max(longest);
    socket_.control_callback([this](websocket::frame_type, beast::string_view) {
      heard_ = Clock::now();
      GatheringSocket& below = socket_.next_layer();
      if (!below.ahead().within_message()) below.message_read();
    });
    if (role == beast::role_type::client) keys_ = std::make_unique<RandomKeys>();
  }

  WebSocket& socket() { return socket_; }

  // Messages of bytes in one frame do not go through Beast: they are all that comes in numbers,
  // and come whole. Everything else does, and so does what is wrong.
  Task<Received> receive() override {
    GatheringSocket& socket = socket_.next_layer();
    forget_message();
    while (role_ == beast::role_type::server && !socket.ahead().other_next(longest_)) {
      if (in_a_row_ == messages_per_turn) {
        in_a_row_ = 0;
        co_await net::post(socket.get_executor(), awaited);
      }
      if (const auto bytes = socket.ahead().next_message(longest_)) {
        ++in_a_row_;
        heard_ = Clock::now();
        socket.message_read();
        co_return Message{.kind = Kind::binary, .bytes = *bytes, .arrived = heard_};
      }
      in_a_row_ = 0;
      const auto [error] = co_await socket.async_wait_readable(no_throw);
      if (error) break;
      const auto failed = socket.read();
      if (failed == net::error::eof && socket.ahead().empty() && !socket.ahead().within_message()) {
        end();
        co_return Ended{.how = Ended::How::half_closed};
      }
      if (failed) break;
    }
    if (const auto fault = fault_next()) {
      const bool too_big = *fault == Ended::How::too_big;
      std::string reason;
      if (too_big) reason = "at most " + std::to_string(longest_) + " bytes";
      co_await close_at_once(too_big ? close_too_big : close_protocol, reason);
      co_return Ended{.how = *fault};
    }
    co_return co_await receive_by_beast();
  }

  // A message is one frame: it needs nothing of Beast, and mostly no waiting.
  Task<bool> send(Kind kind, std::string_view bytes, bool more) override {
    sending_ = true;
    bool sent = is_open();
    GatheringSocket& socket = socket_.next_layer();
    if (!sent) {
      // Beast still has its close to write: who hears that it is over may cut it.
      while (!over_) co_await ended_.wait();
    } else if (role_ == beast::role_type::server && bytes.size() > GatheringSocket::most) {
      FrameHead::append(socket.frames(), first_byte(kind), bytes.size());
      sent = co_await socket.flush(bytes);
    } else {
      append(kind, bytes);
      const bool later = more && socket.frames().size() < GatheringSocket::most;
      if (!later && !socket.flush_at_once()) sent = co_await socket.flush();
    }
    sending_ = false;
    co_return sent;
  }

  Task<> close(std::uint16_t code, std::string_view reason) override {
    // Not by Beast's async_close: that and a read wait for each other for ever where the peer's
    // next frame is a close that was read already, or text that is no UTF-8.
    if (is_open()) {
      std::string frame = close_frame(code, reason, next_key());
      co_await socket_.next_layer().write_last(std::move(frame));
    }
    while (!over_) co_await ended_.wait();
  }

  Task<> linger() override {
    std::array<char, 1024> dropped;
    boost::system::error_code over;
    while (!over) {
      const auto [error, size] =
          co_await beast::get_lowest_layer(socket_).async_read_some(net::buffer(dropped), no_throw);
      over = error;
    }
  }

  void abort() override {
    beast_close_socket(socket_.next_layer());
    end();
  }

  std::optional<Time> hung_up_since() const override {
    return socket_.next_layer().hung_up_since();
  }
  bool is_reset() override {
    pollfd state{.fd = beast::get_lowest_layer(socket_).native_handle(), .events = 0, .revents = 0};
    return ::poll(&state, 1, 0) > 0;
  }
  std::size_t untaken() override {
    int bytes = 0;
    ::ioctl(beast::get_lowest_layer(socket_).native_handle(), SIOCOUTQ, &bytes);
    return static_cast<std::size_t>(bytes);
  }
  Time heard() const override { return heard_; }
  std::optional<Time> assembling_since() const override {
    return socket_.next_layer().incomplete_since();
  }
  std::optional<Time> sending_since() const override {
    if (!sending_) return std::nullopt;
    return socket_.next_layer().progress();
  }

 private:
  bool is_open() const { return socket_.is_open() && !closed_at_once_; }

  std::optional<RandomKeys::Key> next_key() {
    if (!keys_) return std::nullopt;
    return keys_->next();
  }

  static std::uint8_t first_byte(Kind kind) {
    return kind == Kind::text ? 0x81 : kind == Kind::binary ? 0x82 : 0x89;
  }

  void append(Kind kind, std::string_view bytes) {
    std::string& frames = socket_.next_layer().frames();
    const auto key = next_key();
    FrameHead::append(frames, first_byte(kind), bytes.size(), key);
    frames += bytes;
    if (key) mask(std::as_writable_bytes(std::span(frames)).last(bytes.size()), *key);
  }

  // What Beast read last, and its memory where that was seldom needed.
  void forget_message() {
    const bool spacious = buffer_.capacity() > std::max(kept, 4 * buffer_.size());
    buffer_.clear();
    if (spacious) buffer_.shrink_to_fit();
  }

  Task<Received> receive_by_beast() {
    const auto [error, size] = co_await socket_.async_read(buffer_, no_throw);
    if (error) {
      end();
      co_return ended(error);
    }
    heard_ = Clock::now();
    socket_.next_layer().message_read();
    const auto bytes = buffer_.cdata();
    if (ends_within_character()) {
      co_await close_at_once(close_bad_text, {});
      co_return Ended{.how = Ended::How::protocol};
    }
    co_return Message{.kind = socket_.got_text() ? Kind::text : Kind::binary,
                      .bytes = {static_cast<const std::byte*>(bytes.data()), size},
                      .arrived = heard_};
  }

  // Beast does not look where the last fragment is empty.
  bool ends_within_character() const {
    if (role_ == beast::role_type::client || !socket_.got_text()) return false;
    const auto bytes = buffer_.cdata();
    return !is_utf8({static_cast<const char*>(bytes.data()), bytes.size()});
  }

  // What Beast would close without a reason (a message that is too long), or with 1009 though the
  // length has a bit that must be 0 (RFC 6455, 5.2).
  std::optional<Ended::How> fault_next() {
    if (role_ == beast::role_type::client) return std::nullopt;
    const auto head = socket_.next_layer().ahead().next_head();
    if (!head) return std::nullopt;
    if (head->payload >> 63 != 0) return Ended::How::protocol;
    if (head->payload <= longest_ || !(head->is_binary_message() || head->is_text_message()))
      return std::nullopt;
    return Ended::How::too_big;
  }

  // Ends the connection from within receive(), as Beast does for what it finds itself. A send that
  // is under way goes on; nothing follows the close.
  Task<> close_at_once(std::uint16_t code, std::string_view reason) {
    co_await net::post(socket_.get_executor(), awaited);  // what waits to be sent goes first
    closed_at_once_ = true;
    const std::string frame = close_frame(code, reason, std::nullopt);
    GatheringSocket& socket = socket_.next_layer();
    co_await net::async_write(socket, net::buffer(frame), no_throw);
    boost::system::error_code ignored;
    teardown(role_, socket, ignored);
    end();
  }

  void end() {
    over_ = true;
    ended_.notify();
  }

  Ended ended(beast::error_code error) const {
    using How = Ended::How;
    if (error == websocket::error::message_too_big || error == websocket::error::buffer_overflow)
      return {.how = How::too_big};
    if (error == websocket::condition::protocol_violation) return {.how = How::protocol};
    // Where both sides closed at once, the read ends otherwise.
    const auto code = socket_.reason().code;
    if (code > last_close_code) return {.how = How::protocol};
    if (code != websocket::close_code::none)
      return {.how = How::closed, .code = static_cast<std::uint16_t>(code)};
    if (error == websocket::error::closed) return {.how = How::closed, .code = 1005};
    return {.how = How::lost};
  }

  const beast::role_type role_;
  const std::size_t longest_;
  Wakeup ended_;
  bool over_ = false;
  bool closed_at_once_ = false;
  std::unique_ptr<RandomKeys> keys_;  // of a client
  WebSocket socket_;
  beast::flat_buffer buffer_;
  Time heard_ = Clock::now();
  bool sending_ = false;
  unsigned in_a_row_ = 0;  // messages, without a wait
};

ConnectError error_of(beast::error_code error, const websocket::response_type& response) {
  const bool parsing = error.category() == beast::error_code(http::error::bad_version).category();
  if (parsing && error != http::error::end_of_stream && error != http::error::partial_message)
    return {.message =
                "the answer is not HTTP; if this is the ZeroMQ port, its URL begins with tcp://"};
  if (error != websocket::error::upgrade_declined) return {.message = error.message()};
  ConnectError refused{.status = response.result_int(), .message = response.body()};
  const auto field = response[http::field::retry_after];
  std::uint32_t seconds = 0;  // it may also be a date, which our service does not write
  const auto [end, wrong] = std::from_chars(field.begin(), field.end(), seconds);
  if (wrong == std::errc() && end == field.end())
    refused.retry_after = std::chrono::seconds(seconds);
  return refused;
}

}  // namespace

Task<std::unique_ptr<Connection>> accept_websocket(Socket socket, Upgrade upgrade, std::string rest,
                                                   std::size_t longest) {
  auto connection = std::make_unique<WebSocketConnection>(
      beast::role_type::server, std::move(socket), std::move(rest), longest);
  WebSocket& websocket = connection->socket();
  if (!upgrade.subprotocol.empty()) {
    websocket.set_option(websocket::stream_base::decorator(
        [chosen = upgrade.subprotocol](websocket::response_type& response) {
          response.set(http::field::sec_websocket_protocol,
                       beast::string_view(chosen.data(), chosen.size()));
        }));
  }
  // What Beast looks at in a request; all else of it was judged before.
  http::request<http::empty_body> request(http::verb::get, "/", 11);
  request.set(http::field::host, "millrace");
  request.set(http::field::upgrade, "websocket");
  request.set(http::field::connection, "upgrade");
  request.set(http::field::sec_websocket_version, "13");
  request.set(http::field::sec_websocket_key, upgrade.key);
  const auto [error] = co_await websocket.async_accept(request, no_throw);
  if (error) co_return nullptr;
  co_return connection;
}

Task<Result<std::unique_ptr<Connection>, ConnectError>> connect_websocket(Socket socket,
                                                                          std::string host,
                                                                          std::string target) {
  auto connection = std::make_unique<WebSocketConnection>(
      beast::role_type::client, std::move(socket), std::string(), longest_told);
  WebSocket& websocket = connection->socket();
  websocket.set_option(websocket::stream_base::decorator([](websocket::request_type& request) {
    request.set(http::field::sec_websocket_protocol,
                beast::string_view(subprotocol.data(), subprotocol.size()));
  }));
  websocket::response_type response;
  const auto [error] = co_await websocket.async_handshake(response, host, target, no_throw);
  if (error) co_return error_of(error, response);
  co_return std::unique_ptr<Connection>(std::move(connection));
}

}  // namespace millrace
