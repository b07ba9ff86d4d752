// SPDX-License-Identifier: Apache-2.0
#include "transport/websocket/read_ahead.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <boost/asio/write.hpp>
#include <cassert>
#include <catch2/catch.hpp>
#include <random>
#include <vector>

#include "tests/support/allocations.h"
#include "transport/net/listener.h"
#include "transport/websocket/message_reader.h"

using namespace millrace;

namespace {

constexpr std::size_t longest_message = 64 * 1024;

std::string head(std::size_t size) {
  std::string head("\x82", 1);
  if (size < 126) {
    head += static_cast<char>(0x80 | size);
  } else {
    head += '\xfe';
    head += static_cast<char>(size >> 8);
    head += static_cast<char>(size);
  }
  return head.append(4, '\0');  // a mask of zeros
}
std::string frame(const std::string& message) { return head(message.size()) + message; }

// Two sockets of one thread, and the plain sockets of their peers.
struct ReadAheadFixture {
  struct Pair {
    Pair(net::io_context& context, Acceptor& acceptor) : peer(context), ahead(context, "") {
      peer.connect(acceptor.local_endpoint());
      socket.emplace(acceptor.accept());
    }
    void arrives(const std::string& bytes) {
      net::write(peer, net::buffer(bytes));
      fill();
    }
    // Asio's own wait() does not wait for a non-blocking socket.
    void fill() {
      pollfd readable{socket->tcp().native_handle(), POLLIN, 0};
      REQUIRE(::poll(&readable, 1, -1) == 1);
      REQUIRE_FALSE(ahead.fill(*socket));
    }
    std::optional<Bytes> view() {
      const auto event = reader.next(ahead.unread());
      if (!event) return std::nullopt;
      if (const auto* ping = std::get_if<MessageReader::Ping>(&*event)) return ping->payload;
      return std::get<MessageReader::Message>(*event).bytes;
    }
    std::optional<std::string> next() {
      const auto bytes = view();
      if (!bytes) return std::nullopt;
      return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    }

    Socket peer;
    std::optional<StreamSocket> socket;
    ReadAhead ahead;
    MessageReader reader{Role::server, longest_message, ReadBuffer::size};
  };

  net::io_context context{1};
  const std::array<net::io_context*, 1> contexts{&context};
  Acceptor acceptor =
      std::move(listen_on(Tcp::endpoint(net::ip::address_v4::loopback(), 0), contexts).front());
  Pair one{context, acceptor}, other{context, acceptor};
};

}  // namespace

TEST_CASE_METHOD(ReadAheadFixture,
                 "in debug builds a message is overwritten when it is no longer valid") {
  bool debug_build = false;
  assert((debug_build = true));
  if (!debug_build) return;
  one.arrives(frame("first") + frame("second") + frame("third"));
  const auto first = one.view();
  const auto second = one.view();
  CHECK(std::ranges::count(*first, std::byte{0xdb}) == 5);
  CHECK(std::ranges::count(*second, std::byte{0xdb}) == 0);
  other.arrives(frame(""));
  CHECK(std::ranges::count(*second, std::byte{0xdb}) > 0);  // its beginning, at least
  CHECK(one.next() == "third");
}

TEST_CASE_METHOD(ReadAheadFixture, "one read can receive many messages") {
  one.arrives(frame("first") + frame("") + frame("third") + "\x82");
  CHECK(one.next() == "first");
  CHECK(one.next() == "");
  CHECK(one.next() == "third");
  CHECK_FALSE(one.next());
}

TEST_CASE_METHOD(ReadAheadFixture, "a masked message is unmasked") {
  one.arrives("\x82\x83\1\2\3\4" + std::string("`ah"));
  CHECK(one.next() == "ack");
}

TEST_CASE_METHOD(ReadAheadFixture, "unread bytes are kept while other sockets are read") {
  one.arrives(frame("a message") + frame("another").substr(0, 8));
  other.arrives(frame("other") + "\x82");
  CHECK(one.next() == "a message");
  CHECK(other.next() == "other");
  one.arrives(frame("another").substr(8));
  other.arrives(frame("as well").substr(1));
  CHECK(one.next() == "another");
  CHECK(other.next() == "as well");
  CHECK(one.ahead.empty());
}

TEST_CASE_METHOD(ReadAheadFixture, "a socket keeps at most as many bytes as may be read at once") {
  net::use_service<ReadBuffer>(context).allow(10'000);
  const std::string message(4'000, 'x');
  one.arrives(frame(message) + frame(message) + frame(message) + frame(message));
  CHECK(one.next() == message);
  other.arrives("\x82");
  CHECK(one.ahead.memory() < 8'000);
  CHECK(one.next() == message);
  one.fill();
  CHECK(one.next() == message);
  CHECK(one.next() == message);
}

TEST_CASE_METHOD(ReadAheadFixture,
                 "a message of any length is read, however few bytes are read at once") {
  net::use_service<ReadBuffer>(context).allow(0);
  const std::string message(60'000, 'x');
  net::write(one.peer, net::buffer(frame(message)));
  std::optional<std::string> read;
  for (int i = 0; i < 20 && !read; ++i) {
    one.fill();
    read = one.next();
  }
  CHECK(read == message);
}

TEST_CASE_METHOD(ReadAheadFixture, "a long message in many parts is not copied with each part") {
  const std::string message(60'000, 'x');
  const std::string all = frame("first") + frame(message + "!");
  std::vector<std::string> parts;
  for (std::size_t at = 0; at < all.size(); at += 1000) parts.push_back(all.substr(at, 1000));
  const std::string else_read = frame("other");
  const std::size_t before = test::allocations();
  for (const std::string& part : parts) {
    if (!one.ahead.empty()) (void)one.view();
    one.arrives(part);
    other.arrives(else_read);
    (void)other.view();
  }
  CHECK(test::allocations() - before < 10);
  CHECK(one.next() == message + "!");
  CHECK(one.ahead.empty());
}

TEST_CASE_METHOD(
    ReadAheadFixture,
    "a long message is read if its begin follows a message as long as its missing rest") {
  const std::string small = frame(std::string(94, 's'));
  std::string message(5000, 'x');
  message.back() = '!';
  const std::string large = frame(message);
  one.arrives(small + large.substr(0, large.size() - small.size()));
  other.arrives(frame("other"));
  CHECK(one.next());
  one.arrives(large.substr(large.size() - small.size()));
  CHECK(one.next() == message);
}

TEST_CASE_METHOD(ReadAheadFixture,
                 "the messages do not depend on the pieces in which bytes arrive") {
  std::mt19937 random(1);
  other.arrives(frame("other"));
  const auto below = [&](std::size_t end) { return random() % end; };
  constexpr std::array<std::size_t, 8> sizes{0, 1, 125, 126, 200, 3200, 5000, 60'000};
  for (int round = 0; round < 300; ++round) {
    std::string all, expected, seen;
    for (std::size_t frames = 1 + below(8); frames > 0; --frames) {
      const bool is_ping = below(5) == 0;
      std::string message(sizes[below(is_ping ? 3 : sizes.size())], '.');
      for (char& letter : message) letter = static_cast<char>('a' + below(26));
      std::string bytes = frame(message);
      bytes[0] = is_ping ? '\x89' : below(3) == 0 ? '\x81' : '\x82';
      if (!is_ping && below(4) == 0) {  // with an empty last fragment
        bytes[0] &= 0x7f;
        bytes += frame("");
        bytes[bytes.size() - 6] = '\x80';
      }
      all += bytes;
      expected += "[" + message + "]";
    }
    while (!all.empty()) {
      const std::string part = all.substr(0, 1 + below(below(2) ? 20 : 20'000));
      all.erase(0, part.size());
      one.arrives(part);
      while (const auto message = one.next()) seen += "[" + *message + "]";
      if (below(2) && other.next()) other.arrives(frame(std::string(below(3000), '-')));
      if (below(4) == 0) one.ahead.shrink();
    }
    while (seen.size() < expected.size()) {
      one.fill();
      while (const auto message = one.next()) seen += "[" + *message + "]";
    }
    REQUIRE((seen == expected));
  }
}

TEST_CASE_METHOD(ReadAheadFixture, "an idle socket keeps at most 4 KiB of memory") {
  one.arrives(frame(std::string(10'000, 'x')));
  other.arrives(frame("other"));
  CHECK(one.next());
  CHECK(one.ahead.memory() > 10'000);
  one.ahead.shrink();
  CHECK(one.ahead.memory() <= 4096);
}

TEST_CASE_METHOD(ReadAheadFixture, "unread bytes that fill the buffer are an error") {
  const std::string much(ReadBuffer::size, 'x');
  one.peer.non_blocking(true);
  boost::system::error_code error, nothing_yet;
  while (!error || error == net::error::would_block) {
    one.peer.write_some(net::buffer(much), nothing_yet);
    error = one.ahead.fill(*one.socket);
  }
  CHECK(error == net::error::no_buffer_space);
}

TEST_CASE_METHOD(ReadAheadFixture, "messages need no allocation, also if they arrive in parts") {
  const std::string message = frame(std::string(3200, 'x'));
  for (int i = 0; i < 2; ++i) {
    const std::size_t before = test::allocations();
    one.arrives(message.substr(0, 1500));
    other.arrives(message);
    one.arrives(message.substr(1500));
    const bool whole = one.view() && other.view();
    if (i > 0) CHECK(test::allocations() - before == 2);  // those of this test
    CHECK(whole);
  }
}
