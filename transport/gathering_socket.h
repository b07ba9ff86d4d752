// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/append.hpp>
#include <boost/asio/compose.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/role.hpp>
#include <optional>
#include <string>

#include "transport/net.h"
#include "transport/wakeup.h"

namespace millrace {

// The socket below a WebSocket. It gathers messages that follow each other into one write, gives
// out what was read with the upgrade before it reads on, has a last word, and knows how long a
// message has been incomplete: none of that can be seen from above. What is written to a peer that
// has hung up is dropped, and no error: what the peer sent before is still to be read, and Beast
// reads nothing more once a write has failed. The end is told by the read that finds it, the moment
// by hung_up_since(). Confined to one thread.
class GatheringSocket {
 public:
  using executor_type = Executor;
  using next_layer_type = Socket;

  GatheringSocket(Socket socket, std::string rest)
      : socket_(std::move(socket)), rest_(std::move(rest)), written_(socket_.get_executor()) {}

  executor_type get_executor() { return socket_.get_executor(); }
  Socket& next_layer() { return socket_; }
  const Socket& next_layer() const { return socket_; }

  // What is written now may wait for what follows at once.
  void gather(bool more) { gather_ = more; }

  // A message was read whole. From the second read on, the next one has begun.
  void message_read() {
    reads_ = 0;
    incomplete_since_.reset();
  }
  std::optional<Time> incomplete_since() const { return incomplete_since_; }
  Time progress() const { return progress_; }  // when a write last went on
  std::optional<Time> hung_up_since() const { return hung_up_since_; }

  template <class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    if (++reads_ == 2) incomplete_since_ = Clock::now();
    if (rest_.empty()) return socket_.async_read_some(buffers, std::forward<Token>(token));
    const std::size_t size = net::buffer_copy(buffers, net::buffer(rest_));
    rest_.erase(0, size);
    return complete(size, std::forward<Token>(token));
  }

  template <class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    progress_ = Clock::now();
    const std::size_t size = net::buffer_size(buffers);
    if (hung_up_since_ || said_all_) return complete(size, std::forward<Token>(token));
    if (!gather_ && gathered_.empty()) {
      writing_ = true;
      return net::async_compose<Token, Signature>(Write<Buffers>{*this, buffers}, token, socket_);
    }
    const std::size_t before = gathered_.size();
    gathered_.resize(before + size);
    net::buffer_copy(net::buffer(gathered_.data() + before, size), buffers);
    if (gather_ && gathered_.size() < most_) return complete(size, std::forward<Token>(token));
    writing_ = true;
    return net::async_compose<Token, Signature>(Flush{*this, size}, token, socket_);
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
  static constexpr std::size_t most_ = 32 * 1024;

  // As much as the peer takes at once.
  template <class Buffers>
  struct Write {
    GatheringSocket& socket;
    Buffers buffers;

    template <class Self>
    void operator()(Self& self) {
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

  // Writes all that was gathered, then reports the last message's own size.
  struct Flush {
    GatheringSocket& socket;
    std::size_t size;
    std::size_t written = 0;

    template <class Self>
    void operator()(Self& self, boost::system::error_code error = {}, std::size_t count = 0) {
      written += count;
      socket.progress_ = Clock::now();
      if (socket.drops(error)) {
        written = socket.gathered_.size();
        error = {};
      }
      if (error || written == socket.gathered_.size()) {
        socket.end_write();
        socket.gathered_.clear();
        if (socket.gathered_.capacity() > most_) std::string().swap(socket.gathered_);
        return self.complete(error, error ? 0 : size);
      }
      const auto left = net::buffer(socket.gathered_) + written;
      socket.socket_.async_write_some(net::const_buffer(left), std::move(self));
    }
  };

  void end_write() {
    writing_ = false;
    written_.notify();
  }

  bool drops(boost::system::error_code error) {
    if (error != net::error::connection_reset && error != net::error::broken_pipe) return false;
    hung_up_since_ = Clock::now();
    return true;
  }

  template <class Token>
  auto complete(std::size_t size, Token&& token) {
    return net::async_initiate<Token, Signature>(
        [size, executor = get_executor()](auto&& handler) {
          net::post(executor, net::append(std::forward<decltype(handler)>(handler),
                                          boost::system::error_code{}, size));
        },
        token);
  }

  Socket socket_;
  std::string rest_;
  std::string gathered_;
  bool gather_ = false;
  bool writing_ = false;
  bool said_all_ = false;
  Wakeup written_;
  int reads_ = 0;
  std::optional<Time> incomplete_since_;
  Time progress_{};
  std::optional<Time> hung_up_since_;
};

// Beast finds these by their argument.
inline void beast_close_socket(GatheringSocket& socket) {
  boost::system::error_code ignored;
  socket.next_layer().close(ignored);
}

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
