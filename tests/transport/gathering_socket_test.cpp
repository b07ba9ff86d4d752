// SPDX-License-Identifier: Apache-2.0
#include "transport/gathering_socket.h"

#include <array>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>

#include "transport/listener.h"
#include "transport/spawn.h"

using namespace millrace;

namespace {

// The socket under test and the plain one at its other end.
struct PairFixture {
  PairFixture() {
    const std::array contexts{&context};
    auto acceptors = listen_on(Tcp::endpoint(net::ip::address_v4::loopback(), 0), contexts);
    peer.connect(acceptors.front().local_endpoint());
    ours.emplace(Socket(acceptors.front().accept()), "rest");
  }

  std::size_t write(std::string bytes) {
    std::size_t written = 0;
    ours->async_write_some(net::buffer(bytes),
                           [&](boost::system::error_code, std::size_t size) { written = size; });
    settle();
    return written;
  }
  std::string read(std::size_t most) {
    std::string bytes(most, ' ');
    ours->async_read_some(net::buffer(bytes),
                          [&](boost::system::error_code, std::size_t size) { bytes.resize(size); });
    settle();
    return bytes;
  }
  void settle() {
    context.restart();
    context.run();
  }

  net::io_context context{1};
  Socket peer{context};
  std::optional<GatheringSocket> ours;
};

}  // namespace

TEST_CASE_METHOD(PairFixture, "what is gathered goes out with what follows, in one write") {
  ours->gather(true);
  CHECK(write("ab") == 2);
  CHECK(write("cde") == 3);
  CHECK(peer.available() == 0);
  ours->gather(false);
  CHECK(write("f") == 1);
  CHECK(peer.available() == 6);
  CHECK(write("g") == 1);
  CHECK(peer.available() == 7);
}

TEST_CASE_METHOD(PairFixture, "not everything is gathered") {
  ours->gather(true);
  CHECK(write(std::string(40'000, 'x')) == 40'000);
  CHECK(peer.available() == 40'000);
}

TEST_CASE_METHOD(PairFixture, "after the last word nothing is written") {
  spawn(context.get_executor(), ours->write_last("bye"));
  settle();
  CHECK(write("more") == 4);
  REQUIRE(peer.available() == 3);
  std::string last(3, ' ');
  net::read(peer, net::buffer(last));
  CHECK(last == "bye");
}

TEST_CASE_METHOD(PairFixture, "the last word waits for what is being written") {
  const std::string bytes(16 << 20, 'x');
  std::size_t written = 0;
  net::async_write(*ours, net::buffer(bytes),
                   [&](boost::system::error_code, std::size_t size) { written = size; });
  spawn(context.get_executor(), ours->write_last("bye"));
  context.poll();
  REQUIRE(written == 0);
  peer.non_blocking(true);
  boost::system::error_code nothing_yet;
  std::string taken(1 << 20, ' ');
  char last = ' ';
  for (std::size_t all = 0; all < bytes.size() + 3; context.poll()) {
    const std::size_t some = peer.read_some(net::buffer(taken), nothing_yet);
    all += some;
    if (some > 0) last = taken[some - 1];
  }
  CHECK(written == bytes.size());
  CHECK(last == 'e');
}

TEST_CASE_METHOD(PairFixture, "what came with the upgrade is read first") {
  net::write(peer, net::buffer("more", 4));
  CHECK(read(3) == "res");
  CHECK(read(10) == "t");
  CHECK(read(10) == "more");
}

TEST_CASE_METHOD(PairFixture, "a message is incomplete from the second read for it on") {
  net::write(peer, net::buffer("1234", 4));
  read(1);
  CHECK_FALSE(ours->incomplete_since());
  read(1);
  CHECK(ours->incomplete_since());
  ours->message_read();
  CHECK_FALSE(ours->incomplete_since());
  read(1);
  CHECK_FALSE(ours->incomplete_since());
  read(1);
  CHECK(ours->incomplete_since());
}

TEST_CASE_METHOD(PairFixture, "a long write makes progress whenever the peer takes some of it") {
  const std::string bytes(16 << 20, 'x');
  std::size_t written = 0;
  ours->gather(true);
  ours->async_write_some(net::buffer(bytes),
                         [&](boost::system::error_code, std::size_t size) { written = size; });
  context.poll();
  REQUIRE(written == 0);
  const Time before = ours->progress();
  peer.non_blocking(true);
  boost::system::error_code nothing_yet;
  for (std::string taken(1 << 20, ' '); written == 0; context.poll())
    peer.read_some(net::buffer(taken), nothing_yet);
  CHECK(written == bytes.size());
  CHECK(ours->progress() > before);
}
