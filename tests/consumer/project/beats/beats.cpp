// SPDX-License-Identifier: Apache-2.0
#include <beats.h>

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <thread>

namespace beats {
namespace {

namespace asio = boost::asio;

asio::awaitable<void> wait_once() {
  asio::steady_timer timer(co_await asio::this_coro::executor, std::chrono::milliseconds(1));
  co_await timer.async_wait(asio::use_awaitable);
}

asio::awaitable<void> voice(int count, std::atomic<int>& beaten) {
  for (int i = 0; i < count; ++i) {
    co_await wait_once();
    ++beaten;
  }
}

}  // namespace

int beat(int voices, int count) {
  std::atomic<int> beaten = 0;
  asio::io_context context;
  for (int i = 0; i < voices; ++i) asio::co_spawn(context, voice(count, beaten), asio::detached);
  std::thread other([&] { context.run(); });
  context.run();
  other.join();
  return beaten;
}

}  // namespace beats
