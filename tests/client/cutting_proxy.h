// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/write.hpp>
#include <cstddef>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "transport/net/spawn.h"

namespace millrace::test {

// Relays the connections to a port of the loopback, and cuts them after a number of bytes.
class CuttingProxy {
 public:
  static constexpr std::size_t never = std::numeric_limits<std::size_t>::max();
  struct Cut {
    std::size_t up = never;    // bytes to the service
    std::size_t down = never;  // bytes to the client
  };

  // The n-th connection is cut as the n-th of `cuts`, later ones never.
  CuttingProxy(const std::string& url, std::vector<Cut> cuts)
      : port_(static_cast<unsigned short>(std::stoi(url.substr(url.rfind(':') + 1)))),
        cuts_(std::move(cuts)),
        acceptor_(context_, Tcp::endpoint(net::ip::address_v4::loopback(), 0)) {
    spawn(context_.get_executor(), accept());
    thread_ = std::jthread([this] { context_.run(); });
  }
  ~CuttingProxy() { context_.stop(); }

  // `scheme`: that of the service.
  std::string url(const std::string& scheme = "ws") const {
    return scheme + "://127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port());
  }
  // That were accepted so far.
  std::size_t connections() const { return connections_; }

 private:
  struct Pair {
    explicit Pair(Executor executor) : client(executor), service(executor) {}
    void close() {
      boost::system::error_code ignored;
      client.close(ignored);
      service.close(ignored);
    }
    Socket client, service;
  };

  Task<> accept() {
    for (std::size_t count = 0;; ++count) {
      auto pair = std::make_shared<Pair>(context_.get_executor());
      const auto [error] = co_await acceptor_.async_accept(pair->client, no_throw);
      if (error) co_return;
      ++connections_;
      const Tcp::endpoint to(net::ip::address_v4::loopback(), port_);
      const auto [refused] = co_await pair->service.async_connect(to, no_throw);
      if (refused) continue;
      pair->client.set_option(Tcp::no_delay(true));
      pair->service.set_option(Tcp::no_delay(true));
      const Cut cut = count < cuts_.size() ? cuts_[count] : Cut();
      spawn(context_.get_executor(), relay(pair, pair->client, pair->service, cut.up));
      spawn(context_.get_executor(), relay(pair, pair->service, pair->client, cut.down));
    }
  }

  static Task<> relay(std::shared_ptr<Pair> pair, Socket& from, Socket& to, std::size_t left) {
    std::array<char, 4096> bytes;
    while (left > 0) {
      const auto buffer = net::buffer(bytes, left);
      const auto [ended, count] = co_await from.async_read_some(buffer, no_throw);
      if (ended) break;
      left -= count;
      const auto whole = net::buffer(bytes, count);
      const auto [failed, written] = co_await net::async_write(to, whole, no_throw);
      if (failed) break;
    }
    pair->close();
  }

  net::io_context context_{1};
  const unsigned short port_;
  const std::vector<Cut> cuts_;
  Acceptor acceptor_;
  std::atomic<std::size_t> connections_{0};
  std::jthread thread_;  // the last member: it ends before the members that it uses
};

}  // namespace millrace::test
