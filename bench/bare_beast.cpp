// SPDX-License-Identifier: Apache-2.0
#include "bench/bare_beast.h"

#include <boost/asio/basic_signal_set.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <csignal>
#include <functional>
#include <list>
#include <string>
#include <utility>

#include "schemas/server_messages.h"
#include "transport/net/net.h"

namespace millrace::bench {

namespace {

namespace beast = boost::beast;
namespace http = beast::http;
namespace websocket = beast::websocket;
using Error = boost::system::error_code;

// One connection. Each callback starts the next operation: a coroutine would need more CPU time.
// `over`, the last call, destroys it.
class Client {
 public:
  Client(Socket socket, BareArrivals& arrivals, std::function<void()> over)
      : stream_(std::move(socket)), arrivals_(arrivals), over_(std::move(over)) {}

  void start() {
    http::async_read(stream_.next_layer(), buffer_, request_,
                     [this](Error error, std::size_t) { error ? over_() : accept(); });
  }

 private:
  void accept() {
    const auto listed = request_[http::field::sec_websocket_protocol];
    stream_.set_option(
        websocket::stream_base::decorator([listed](websocket::response_type& response) {
          if (!listed.empty()) response.set(http::field::sec_websocket_protocol, listed);
        }));
    stream_.async_accept(request_, [this](Error error) { error ? over_() : ready(); });
  }

  void ready() {
    append_ready(text_, {.stream = "s", .pipeline = "default"});
    stream_.text(true);
    stream_.async_write(net::buffer(text_),
                        [this](Error error, std::size_t) { error ? over_() : read(); });
  }

  void read() {
    stream_.async_read(buffer_, [this](Error error, std::size_t) { error ? over_() : handle(); });
  }

  void handle() {
    if (stream_.got_text()) return end();
    arrivals_.add({static_cast<const std::byte*>(buffer_.data().data()), buffer_.size()});
    ++messages_;
    bytes_ += buffer_.size();
    buffer_.clear();
    read();
  }

  void end() {
    text_.clear();
    append_closed(text_, bytes_ / 2, messages_);
    stream_.async_write(net::buffer(text_),
                        [this](Error error, std::size_t) { error ? over_() : close(); });
  }

  void close() {
    stream_.async_close(websocket::close_code::normal, [this](Error) { over_(); });
  }

  websocket::stream<Socket, false> stream_;
  BareArrivals& arrivals_;
  const std::function<void()> over_;
  http::request<http::empty_body> request_;
  beast::flat_buffer buffer_;
  std::string text_;
  std::uint64_t bytes_ = 0, messages_ = 0;
};

}  // namespace

class BareBeast::Server {
 public:
  Server(std::uint16_t port, BareArrivals& arrivals)
      : arrivals_(arrivals),
        acceptor_(io_, Tcp::endpoint(net::ip::address_v4::loopback(), port)),
        terminated_(io_, SIGTERM) {
    accept();
    terminated_.async_wait([this](Error, int) { io_.stop(); });
  }

  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  void run() { io_.run(); }

 private:
  void accept() {
    acceptor_.async_accept([this](Error error, Socket socket) {
      if (!error) add_client(std::move(socket));
      accept();
    });
  }

  void add_client(Socket socket) {
    socket.set_option(Tcp::no_delay(true));
    const auto position = clients_.emplace(clients_.end());
    *position = std::make_unique<Client>(std::move(socket), arrivals_,
                                         [this, position] { clients_.erase(position); });
    (*position)->start();
  }

  BareArrivals& arrivals_;
  net::io_context io_{1};
  std::list<std::unique_ptr<Client>> clients_;
  Acceptor acceptor_;
  net::basic_signal_set<Executor> terminated_;
};

BareBeast::BareBeast(std::uint16_t port, BareArrivals& arrivals)
    : server_(std::make_unique<Server>(port, arrivals)) {}
BareBeast::~BareBeast() = default;
std::uint16_t BareBeast::port() const { return server_->port(); }
void BareBeast::run() { server_->run(); }

}  // namespace millrace::bench
