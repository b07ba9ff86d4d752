// SPDX-License-Identifier: Apache-2.0
#include "transport/net/listener.h"

#include <netinet/tcp.h>

#include <array>
#include <catch2/catch.hpp>

#include "tests/support/descriptor_limit.h"
#include "tests/support/patience.h"
#include "transport/net/spawn.h"

using namespace millrace;

namespace {

const Tcp::endpoint any_port(net::ip::address_v4::loopback(), 0);

}  // namespace

TEST_CASE("several threads can listen on one address") {
  net::io_context first(1), second(1);
  const std::array contexts{&first, &second};
  const auto acceptors = listen_on(any_port, contexts);
  REQUIRE(acceptors.size() == 2);
  CHECK(acceptors[0].local_endpoint().port() != 0);
  CHECK(acceptors[0].local_endpoint() == acceptors[1].local_endpoint());
}

TEST_CASE("an address in use is an error that names it, even if its owner allows sharing") {
  net::io_context context(1);
  const std::array contexts{&context};
  const auto owner = listen_on(any_port, contexts);
  const auto endpoint = owner[0].local_endpoint();
  CHECK_THROWS_WITH(
      listen_on(endpoint, contexts),
      "cannot listen on 127.0.0.1:" + std::to_string(endpoint.port()) + ": Address already in use");
}

TEST_CASE("kernel buffers of a client are limited, and a host that vanishes is detected") {
  net::io_context context(1);
  const std::array contexts{&context};
  const SocketLimits limits{.receive_buffer = 64 * 1024};
  auto acceptors = listen_on(any_port, contexts, limits);
  Socket client(context);
  client.connect(acceptors[0].local_endpoint());
  Socket accepted = acceptors[0].accept();
  const auto option = [&](int level, int name) {
    int value = 0;
    socklen_t size = sizeof value;
    REQUIRE(::getsockopt(accepted.native_handle(), level, name, &value, &size) == 0);
    return value;
  };
  CHECK(option(SOL_SOCKET, SO_RCVBUF) + option(SOL_SOCKET, SO_SNDBUF) ==
        static_cast<int>(limits.kernel_bytes()));
  CHECK(option(SOL_SOCKET, SO_RCVBUF) == 128 * 1024);
  CHECK(option(IPPROTO_TCP, TCP_USER_TIMEOUT) == 30'000);
  CHECK(option(SOL_SOCKET, SO_KEEPALIVE) == 1);
  CHECK(option(IPPROTO_TCP, TCP_KEEPIDLE) == 30);
  CHECK(option(IPPROTO_TCP, TCP_KEEPINTVL) == 10);
}

TEST_CASE("an address is free again at once") {
  net::io_context context(1);
  const std::array contexts{&context};
  const auto endpoint = listen_on(any_port, contexts)[0].local_endpoint();
  CHECK_NOTHROW(listen_on(endpoint, contexts));
}

namespace {

Task<> accept_all(Acceptor& acceptor, std::vector<Socket>& accepted) {
  for (;;) {
    auto socket = co_await accept(acceptor);
    if (!socket) co_return;
    accepted.push_back(std::move(*socket));
  }
}

template <class Done>
void run_until(net::io_context& context, Done done) {
  const Time late = Clock::now() + patience;
  while (!done() && Clock::now() < late) context.run_one_until(late);
  REQUIRE(done());
}

}  // namespace

TEST_CASE("without a free descriptor, a client waits for one, and this takes little CPU time") {
  net::io_context context(1);
  const std::array contexts{&context};
  auto acceptors = listen_on(any_port, contexts);
  std::vector<Socket> accepted;
  spawn(context.get_executor(), accept_all(acceptors.front(), accepted));
  std::array<Socket, 2> clients{Socket(context), Socket(context)};
  clients[0].connect(acceptors.front().local_endpoint());
  run_until(context, [&] { return accepted.size() == 1; });
  clients[1].open(Tcp::v4());
  Timer used(context, std::chrono::milliseconds(1));  // as DescriptorLimit asks for
  bool fired = false;
  used.async_wait([&](boost::system::error_code) { fired = true; });
  run_until(context, [&] { return fired; });
  std::size_t steps = 0;
  {
    const DescriptorLimit none(0);
    clients[1].connect(acceptors.front().local_endpoint());
    for (const Time soon = Clock::now() + std::chrono::milliseconds(150); Clock::now() < soon;)
      steps += context.run_one_until(soon);
  }
  CHECK(steps < 40);  // including the retries
  CHECK(accepted.size() == 1);
  run_until(context, [&] { return accepted.size() == 2; });
  acceptors.front().close();
  context.poll();
}
