// SPDX-License-Identifier: Apache-2.0
#include "transport/websocket/gathering_socket.h"

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>

#include "transport/net/listener.h"
#include "transport/net/spawn.h"

using namespace millrace;

namespace {

// The socket under test and the plain one at its other end.
struct PairFixture {
  PairFixture() {
    const std::array contexts{&context};
    auto acceptors = listen_on(Tcp::endpoint(net::ip::address_v4::loopback(), 0), contexts);
    peer.connect(acceptors.front().local_endpoint());
    ours.emplace(Socket(acceptors.front().accept()), GatheringSocket::Role::server, "\x82\x04rest");
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
  // So much as the peer reads while we go on.
  std::string taken(std::size_t size) {
    peer.non_blocking(true);
    std::string all(size, ' ');
    for (std::size_t at = 0; at < size; context.restart(), context.poll()) {
      boost::system::error_code nothing_yet;
      at += peer.read_some(net::buffer(all) + at, nothing_yet);
    }
    return all;
  }
  void begin_read() {
    ours->async_read_some(net::buffer(&waiting, 1), [](boost::system::error_code, std::size_t) {});
    context.restart();
    context.poll();
  }
  void settle() {
    context.restart();
    context.run();
  }

  char waiting = 0;
  net::io_context context{1};
  Socket peer{context};
  std::optional<GatheringSocket> ours;
};

}  // namespace

TEST_CASE("a socket that was closed meanwhile is one that has ended") {
  net::io_context context{1};
  GatheringSocket ours(Socket(context), GatheringSocket::Role::server, "");
  CHECK(ours.read() == net::error::bad_descriptor);
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

TEST_CASE_METHOD(PairFixture, "what is flushed is not broken by what else is written") {
  ours->frames() = std::string(16 << 20, 'x');
  REQUIRE_FALSE(ours->flush_at_once());
  const std::size_t left = ours->frames().size();
  bool flushed = false, ponged = false;
  net::co_spawn(context, ours->flush(), [&](std::exception_ptr, bool done) { flushed = done; });
  context.poll();
  ours->async_write_some(net::buffer("pong", 4),
                         [&](boost::system::error_code, std::size_t) { ponged = true; });
  context.poll();
  REQUIRE(left > 0);
  REQUIRE_FALSE(ponged);
  const std::string all = taken((16 << 20) + 4);
  CHECK(flushed);
  CHECK(ponged);
  CHECK(all.substr(all.size() - 6) == "xxpong");
  CHECK(all.find('p') == all.size() - 4);
}

TEST_CASE_METHOD(PairFixture, "what is flushed waits for what is being written") {
  const std::string bytes(16 << 20, 'x');
  bool flushed = false;
  net::async_write(*ours, net::buffer(bytes), [](boost::system::error_code, std::size_t) {});
  context.poll();
  ours->frames() = "after";
  REQUIRE_FALSE(ours->flush_at_once());
  net::co_spawn(context, ours->flush(), [&](std::exception_ptr, bool done) { flushed = done; });
  const std::string all = taken(bytes.size() + 5);
  CHECK(flushed);
  CHECK(all.substr(all.size() - 6) == "xafter");
}

TEST_CASE_METHOD(PairFixture, "who waits for a write that never ends hears of the cut") {
  const std::string bytes(16 << 20, 'x');
  bool over = false;
  net::async_write(*ours, net::buffer(bytes), [](boost::system::error_code, std::size_t) {});
  context.poll();
  ours->frames() = "after";
  net::co_spawn(context, ours->flush(), [&](std::exception_ptr, bool done) { over = !done; });
  context.poll();
  REQUIRE_FALSE(over);
  ours->cut();
  settle();
  CHECK(over);
}

TEST_CASE_METHOD(PairFixture, "what is flushed to a peer that has hung up is dropped") {
  net::write(peer, net::buffer("unread", 6));
  peer.set_option(net::socket_base::linger(true, 0));
  peer.close();
  ours->frames() = "lost";
  while (!ours->hung_up_since()) CHECK(ours->flush_at_once());
  ours->frames() = "lost too";
  CHECK(ours->flush_at_once());
  CHECK(ours->frames().empty());
}

TEST_CASE_METHOD(PairFixture, "what came with the upgrade is read first, no frame with another") {
  net::write(peer, net::buffer("\x82\x04more", 6));
  CHECK(read(3) == "\x82\x04r");
  CHECK(read(10) == "est");
  CHECK(read(10) == "\x82\x04more");
}

TEST_CASE_METHOD(PairFixture, "a message is incomplete while more of it is waited for") {
  CHECK(read(10) == "\x82\x04rest");
  CHECK_FALSE(ours->incomplete_since());
  begin_read();  // who takes what came says whether it was all
  CHECK(ours->incomplete_since());
  ours->message_read();
  CHECK_FALSE(ours->incomplete_since());
}

TEST_CASE_METHOD(PairFixture, "a message that has not begun is not incomplete") {
  CHECK(read(10) == "\x82\x04rest");
  ours->message_read();
  begin_read();
  CHECK_FALSE(ours->incomplete_since());
}

TEST_CASE_METHOD(PairFixture, "the part of a head is a message that has begun") {
  CHECK(read(10) == "\x82\x04rest");
  ours->message_read();
  net::write(peer, net::buffer("\x82", 1));
  begin_read();
  CHECK(ours->incomplete_since());
}

TEST_CASE_METHOD(PairFixture, "a long write makes progress whenever the peer takes some of it") {
  const std::string bytes(16 << 20, 'x');
  bool written = false;
  ours->frames() = "head";
  net::co_spawn(context, ours->flush(bytes), [&](std::exception_ptr, bool all) { written = all; });
  context.poll();
  REQUIRE_FALSE(written);
  const Time before = ours->progress();
  peer.non_blocking(true);
  boost::system::error_code nothing_yet;
  std::string all, taken(1 << 20, ' ');
  for (; all.size() < bytes.size() + 4; context.poll())
    all.append(taken, 0, peer.read_some(net::buffer(taken), nothing_yet));
  CHECK(written);
  CHECK(all == "head" + bytes);
  CHECK(ours->progress() > before);
}
