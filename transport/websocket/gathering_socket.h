// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <boost/asio/append.hpp>
#include <boost/asio/compose.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/role.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "transport/net/net.h"
#include "transport/net/wakeup.h"
#include "transport/websocket/read_ahead.h"

namespace millrace {

// The socket below a WebSocket. A server's reads ahead, and gives frames that are whole messages to
// who asks for them before Beast does; a client's leaves the answer to its upgrade, and all that
// follows, to Beast. It gathers messages that follow each other into one write, has a
// last word, and knows how long a message has been incomplete: none of that can be seen from above.
// What is written to a peer that has hung up is dropped, and no error: what the peer sent before is
// still to be read, and Beast reads nothing more once a write has failed. The end is told by the
// read that finds it, the moment by hung_up_since(). Confined to one thread.
class GatheringSocket {
 public:
  using executor_type = Executor;
  using next_layer_type = Socket;

  using Role = boost::beast::role_type;

  GatheringSocket(Socket socket, Role role, std::string rest)
      : socket_(std::move(socket)),
        role_(role),
        ahead_(socket_.get_executor().context(), std::move(rest)),
        written_(socket_.get_executor()) {
    boost::system::error_code closed;  // meanwhile: who uses it finds that
    socket_.non_blocking(true, closed);
  }

  executor_type get_executor() { return socket_.get_executor(); }
  Socket& next_layer() { return socket_; }
  const Socket& next_layer() const { return socket_; }

  // What was read and not taken, by next_message() or Beast.
  ReadAhead& ahead() { return ahead_; }
  // When there is something to read(). Whoever waits while a message has begun waits for its rest.
  template <class Token>
  auto async_wait_readable(Token&& token) {
    if ((begun_ || !ahead_.empty()) && !incomplete_since_) incomplete_since_ = Clock::now();
    ahead_.shrink();
    return socket_.async_wait(Socket::wait_read, std::forward<Token>(token));
  }
  boost::system::error_code read() {
    const auto error = ahead_.fill(socket_);
    return error == net::error::would_block ? boost::system::error_code() : error;
  }
  // A message was taken whole.
  void message_read() {
    begun_ = false;
    incomplete_since_.reset();
  }
  std::optional<Time> incomplete_since() const { return incomplete_since_; }
  Time progress() const { return progress_; }  // when a write last went on
  std::optional<Time> hung_up_since() const { return hung_up_since_; }

  template <class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    if (role_ == Role::client) return socket_.async_read_some(buffers, std::forward<Token>(token));
    return net::async_compose<Token, Signature>(Read<Buffers>{*this, buffers}, token, socket_);
  }

  template <class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    progress_ = Clock::now();
    return net::async_compose<Token, Signature>(Write<Buffers>{*this, buffers}, token, socket_);
  }

  // Messages are written not by Beast: whole frames, which are then flushed.
  static constexpr std::size_t most = 32 * 1024;  // that wait for what follows
  std::string& frames() { return frames_; }
  // False if not all of it was taken at once: then flush().
  bool flush_at_once() {
    if (silent()) empty(frames_);
    if (writing_ || wants_ || frames_.empty()) return frames_.empty();
    boost::system::error_code error;
    const std::size_t count = socket_.write_some(net::buffer(frames_), error);
    if (drops(error) || count == frames_.size())
      empty(frames_);
    else
      frames_.erase(0, count);
    return frames_.empty();
  }
  // And then `behind`, which it does not copy. False where the connection has ended.
  Task<bool> flush(std::string_view behind = {}) {
    progress_ = Clock::now();
    while (writing_ || wants_) co_await written_.wait();
    if (silent()) {
      empty(frames_);
      co_return true;
    }
    writing_ = flushing_ = true;
    boost::system::error_code failed;
    for (std::size_t written = 0; !failed && written < frames_.size() + behind.size();) {
      const std::size_t first = std::min(written, frames_.size());
      const std::array<net::const_buffer, 2> left{
          net::buffer(frames_) + first,
          net::buffer(behind.data(), behind.size()) + (written - first)};
      const auto [error, count] = co_await socket_.async_write_some(left, no_throw);
      written += count;
      progress_ = Clock::now();
      if (error) failed = error;
    }
    if (drops(failed)) failed = {};
    empty(frames_);
    flushing_ = false;
    end_write();
    co_return !failed;
  }

  // Who waits for a write waits no longer: there may be none that would end.
  void cut() {
    boost::system::error_code ignored;
    socket_.close(ignored);
    wants_ = false;
    end_write();
  }

  // Writes the last that the peer gets to read: what is written afterwards is dropped. Nothing is
  // gathered, and nobody but who reads (pongs) may be writing.
  Task<> write_last(std::string bytes) {
    // Between two parts of what Beast writes as one, writing_ is not seen false.
    while (writing_) co_await written_.wait();
    said_all_ = true;
    co_await net::async_write(socket_, net::buffer(bytes), no_throw);
  }

 private:
  using Signature = void(boost::system::error_code, std::size_t);
  static constexpr std::size_t kept_ = 4 * 1024;  // for the next time

  template <class Buffers>
  struct Read {
    GatheringSocket& socket;
    Buffers buffers;

    template <class Self>
    void operator()(Self& self) {
      const std::size_t size = socket.take(buffers);
      if (size == 0) return socket.async_wait_readable(std::move(self));
      net::post(socket.get_executor(), net::append(std::move(self), size));
    }
    template <class Self>
    void operator()(Self& self, boost::system::error_code error) {
      if (!error) error = socket.read();
      if (error) return self.complete(error, 0);
      const std::size_t size = socket.take(buffers);
      if (size == 0) return socket.async_wait_readable(std::move(self));
      self.complete({}, size);
    }
    template <class Self>
    void operator()(Self& self, std::size_t size) {
      self.complete({}, size);
    }
  };

  template <class Buffers>
  std::size_t take(const Buffers& buffers) {
    std::size_t all = 0;
    for (auto at = net::buffer_sequence_begin(buffers); at != net::buffer_sequence_end(buffers);
         ++at) {
      const net::mutable_buffer to(*at);
      const std::size_t count = ahead_.read(to);
      all += count;
      if (count < to.size()) break;
    }
    begun_ |= all > 0;
    return all;
  }

  // As much as the peer takes at once.
  template <class Buffers>
  struct Write {
    GatheringSocket& socket;
    Buffers buffers;

    template <class Self>
    void operator()(Self& self, boost::system::error_code error = {}) {
      // What is flushed goes first, and as long as it is not taken, this finds no room either.
      socket.wants_ = socket.flushing_ && !error;
      if (socket.wants_) return socket.socket_.async_wait(Socket::wait_write, std::move(self));
      if (error || socket.silent()) {
        const std::size_t size = error ? 0 : net::buffer_size(buffers);
        return net::post(socket.get_executor(), net::append(std::move(self), error, size));
      }
      socket.writing_ = true;
      const Buffers some = buffers;
      socket.socket_.async_write_some(some, std::move(self));
    }
    template <class Self>
    void operator()(Self& self, boost::system::error_code error, std::size_t count) {
      socket.end_write();
      if (socket.drops(error)) return self.complete({}, net::buffer_size(buffers));
      self.complete(error, count);
    }
  };

  bool silent() const { return said_all_ || hung_up_since_; }

  static void empty(std::string& bytes) {
    bytes.clear();
    if (bytes.capacity() > kept_) std::string().swap(bytes);
  }

  void end_write() {
    writing_ = false;
    written_.notify();
  }

  bool drops(boost::system::error_code error) {
    if (error != net::error::connection_reset && error != net::error::broken_pipe) return false;
    hung_up_since_ = Clock::now();
    return true;
  }

  Socket socket_;
  const Role role_;
  ReadAhead ahead_;
  std::string frames_;
  bool writing_ = false;
  bool flushing_ = false;  // it is flush() that writes
  bool wants_ = false;     // Beast waits for that, and is the next
  bool said_all_ = false;
  Wakeup written_;
  bool begun_ = false;  // of a message, Beast has some
  std::optional<Time> incomplete_since_;
  Time progress_{};
  std::optional<Time> hung_up_since_;
};

// Beast finds these by their argument.
inline void beast_close_socket(GatheringSocket& socket) { socket.cut(); }

// The server hangs up first (RFC 6455, 7.1.1). The wait for the peer to do so is not in here, but
// in Connection::linger: Beast's own closes the socket over unread bytes, which takes its close
// frame back from a peer that is still sending.
inline void teardown(boost::beast::role_type role, GatheringSocket& socket,
                     boost::system::error_code& error) {
  if (role == boost::beast::role_type::server)
    socket.next_layer().shutdown(Socket::shutdown_send, error);
  if (error == net::error::not_connected) error = {};  // it has hung up too
}

template <class Handler>
void async_teardown(boost::beast::role_type role, GatheringSocket& socket, Handler&& handler) {
  boost::system::error_code error;
  teardown(role, socket, error);
  net::post(socket.get_executor(), net::append(std::forward<Handler>(handler), error));
}

}  // namespace millrace
