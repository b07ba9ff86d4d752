// SPDX-License-Identifier: Apache-2.0
#include "transport/net/framed_socket.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "tests/support/descriptor_limit.h"

using namespace millrace;
using Sent = FramedSocket::Sent;

namespace {

std::pair<FileDescriptor, FileDescriptor> raw_pair() {
  std::array<int, 2> sockets{};
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()) != 0) throw std::bad_alloc();
  return {FileDescriptor(sockets[0]), FileDescriptor(sockets[1])};
}

struct Pair {
  explicit Pair(const FramedLimits& limits = {}) : Pair(raw_pair(), limits) {}
  Pair(std::pair<FileDescriptor, FileDescriptor> sockets, const FramedLimits& limits)
      : a(std::move(sockets.first), limits), b(std::move(sockets.second), limits) {}
  FramedSocket a, b;
};

// The next message as text; "" if none is complete.
std::string receive(FramedSocket& socket) {
  const auto message = socket.try_receive();
  REQUIRE(message.has_value());
  if (!*message) return "";
  return {reinterpret_cast<const char*>((*message)->data()), (*message)->size()};
}

void write_raw(const FileDescriptor& socket, const std::string& text) {
  REQUIRE(::write(socket.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
}

}  // namespace

TEST_CASE("messages arrive whole and in order, and without one the result is nullopt") {
  Pair pair;
  CHECK(receive(pair.b).empty());
  CHECK(pair.a.try_send(bytes_in("one")) == Sent::accepted);
  CHECK(pair.a.try_send(bytes_in("two!")) == Sent::accepted);
  CHECK(receive(pair.b) == "one");
  CHECK(receive(pair.b) == "two!");
  CHECK(receive(pair.b).empty());
}

TEST_CASE("a message that arrives byte by byte is one message") {
  auto [raw, socket] = raw_pair();
  FramedSocket reader(std::move(socket), {});
  const std::string frame("\3\0\0\0abc\1\0\0\0d", 12);
  std::string got;
  for (const char c : frame) {
    write_raw(raw, std::string(1, c));
    got += receive(reader);
  }
  CHECK(got == "abcd");
}

TEST_CASE("a message into an empty buffer begins at an aligned address") {
  Pair pair;
  for (int i = 0; i < 3; ++i) {
    CHECK(pair.a.try_send(bytes_in("xyz")) == Sent::accepted);
    const auto message = pair.b.try_receive();
    CHECK(reinterpret_cast<std::uintptr_t>((*message)->data()) % 8 == 0);
    CHECK(receive(pair.b).empty());
  }
}

TEST_CASE("a message larger than every buffer is sent in pieces") {
  Pair pair;
  const std::string big(3'000'000, 'x');
  CHECK(pair.a.try_send(bytes_in(big)) == Sent::accepted);
  CHECK(pair.a.try_send(bytes_in("behind")) == Sent::accepted);
  CHECK(pair.a.has_output());
  std::string got;
  while (got.empty()) {
    got = receive(pair.b);
    CHECK(pair.a.flush());
  }
  CHECK((got == big));
  CHECK(receive(pair.b) == "behind");
  CHECK_FALSE(pair.a.has_output());
}

TEST_CASE("output to a peer that does not read is limited") {
  Pair pair({.max_outgoing = 10'000});
  const std::string piece(5'000, 'x');
  int sent = 0;
  while (pair.a.try_send(bytes_in(piece)) == Sent::accepted) ++sent;
  CHECK(pair.a.try_send(bytes_in(piece)) == Sent::full);
  int received = 0;
  while (pair.a.has_output() || received < sent) {
    if (!receive(pair.b).empty()) ++received;
    REQUIRE(pair.a.flush());
  }
  CHECK(received == sent);
  CHECK(pair.a.try_send(bytes_in(piece)) == Sent::accepted);
}

TEST_CASE("a message longer than the limit is an error before it is read") {
  auto [raw, socket] = raw_pair();
  FramedSocket reader(std::move(socket), {.max_message = 3});
  write_raw(raw, std::string("\3\0\0\0abc\4\0\0\0", 11));
  CHECK(receive(reader) == "abc");
  CHECK(reader.try_receive().error() == FramedError::too_long);
}

TEST_CASE("a new limit applies to messages received from then on") {
  auto [raw, socket] = raw_pair();
  FramedSocket reader(std::move(socket), {.max_message = 3});
  write_raw(raw, std::string("\3\0\0\0abc", 7));
  CHECK(receive(reader) == "abc");
  reader.set_limits({.max_message = 4});
  write_raw(raw, std::string("\4\0\0\0abcd", 8));
  CHECK(receive(reader) == "abcd");
}

TEST_CASE(
    "received bytes above a socket's own share count in the shared budget until they are read") {
  Budget budget(2'000'000);
  const FramedLimits limits{.incoming = &budget, .unshared = 200'000};
  Pair first(limits), second(limits);
  const std::string small(100'000, 'x'), big(1'000'000, 'y');
  const auto pass = [](Pair& pair, const std::string& text) {
    CHECK(pair.a.try_send(bytes_in(text)) == Sent::accepted);
    std::string got;
    while ((got = receive(pair.b)).empty()) REQUIRE(pair.a.flush());
    CHECK((got == text));
  };
  pass(first, small);
  CHECK(budget.taken() == 0);
  pass(first, big);
  CHECK(budget.taken() > 700'000);
  CHECK(receive(first.b).empty());
  CHECK(budget.taken() == 0);

  budget.set_limit(100'000);
  pass(second, small);
  CHECK(second.a.try_send(bytes_in(big)) == Sent::accepted);
  auto received = second.b.try_receive();
  for (; received && !*received; received = second.b.try_receive()) REQUIRE(second.a.flush());
  CHECK(received.error() == FramedError::no_room);
}

TEST_CASE("one flush sends no more than 1 MiB") {
  Pair pair;
  const std::string big(8 << 20, 'x');
  CHECK(pair.a.try_send(bytes_in(big)) == Sent::accepted);
  while (receive(pair.b).empty()) {
    const std::size_t before = pair.a.unsent();
    REQUIRE(pair.a.flush());
    CHECK(before - pair.a.unsent() <= 1 << 20);
  }
}

TEST_CASE("an end between messages differs from an end within a message") {
  for (const auto& [sent, expected] : {std::pair{std::string(), FramedError::closed},
                                       {std::string("\3\0\0\0a", 5), FramedError::lost}}) {
    auto [raw, socket] = raw_pair();
    FramedSocket reader(std::move(socket), {});
    write_raw(raw, sent);
    raw = FileDescriptor();
    CHECK(reader.try_receive().error() == expected);
  }
}

TEST_CASE("a socket that ends is read to its last message, and then its peer receives the end") {
  Pair pair;
  CHECK(pair.a.try_send(bytes_in("last")) == Sent::accepted);
  pair.a.end();
  CHECK(receive(pair.b) == "last");
  CHECK(pair.b.try_receive().error() == FramedError::closed);
  CHECK(pair.a.try_receive().error() == FramedError::closed);
}

TEST_CASE("sending to a peer that has disconnected fails without a signal") {
  Pair pair;
  { const auto gone = std::move(pair.b); }
  CHECK(pair.a.try_send(bytes_in("x")) == Sent::failed);
}

TEST_CASE("a descriptor arrives with its message") {
  Pair pair({.accepts_descriptor = true});
  const FileDescriptor memory(::memfd_create("test", MFD_CLOEXEC));
  CHECK(pair.a.try_send(bytes_in("before")) == Sent::accepted);
  CHECK(pair.a.try_send(bytes_in("slabs"), memory.get()) == Sent::accepted);
  CHECK(receive(pair.b) == "before");
  CHECK(receive(pair.b) == "slabs");
  const FileDescriptor got = pair.b.take_descriptor();
  struct stat sent {};
  struct stat received {};
  REQUIRE(::fstat(memory.get(), &sent) == 0);
  REQUIRE(::fstat(got.get(), &received) == 0);
  CHECK(sent.st_ino == received.st_ino);
  CHECK_FALSE(pair.b.take_descriptor());
}

TEST_CASE("an unexpected descriptor ends the connection") {
  Pair pair;
  const FileDescriptor memory(::memfd_create("test", MFD_CLOEXEC));
  CHECK(pair.a.try_send(bytes_in("x"), memory.get()) == Sent::accepted);
  CHECK(pair.b.try_receive().error() == FramedError::descriptor);
}

TEST_CASE("a descriptor beyond the process's limit ends the connection") {
  Pair pair({.accepts_descriptor = true});
  const FileDescriptor memory(::memfd_create("test", MFD_CLOEXEC));
  CHECK(pair.a.try_send(bytes_in("slabs"), memory.get()) == Sent::accepted);
  const auto received = [&] {
    const DescriptorLimit full(0);
    return pair.b.try_receive();
  }();
  CHECK(received.error() == FramedError::descriptor);
}

TEST_CASE("a descriptor does not overtake queued output") {
  Pair pair({.accepts_descriptor = true});
  const FileDescriptor memory(::memfd_create("test", MFD_CLOEXEC));
  CHECK(pair.a.try_send(bytes_in(std::string(3'000'000, 'x'))) == Sent::accepted);
  CHECK(pair.a.try_send(bytes_in("slabs"), memory.get()) == Sent::full);
}

TEST_CASE("the error of connecting without a listener names the path") {
  CHECK_THROWS_WITH(FramedSocket::connect("/tmp/nobody-listens.sock", {}),
                    Catch::Contains("/tmp/nobody-listens.sock"));
  CHECK_THROWS_WITH(FramedSocket::connect(std::string(108, 'a'), {}), Catch::Contains("107 bytes"));
}
