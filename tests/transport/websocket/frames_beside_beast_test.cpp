// SPDX-License-Identifier: Apache-2.0
// Compares our connection with Beast's: random bytes in random pieces yield the same messages,
// pongs, closes and errors, except for the closes that docs/internals/decisions/0030-… lists.
// Another connection of the thread, which shares the read buffer, may be read between the pieces.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <catch2/catch.hpp>
#include <optional>
#include <random>

#include "tests/support/masked.h"
#include "tests/support/sampled.h"
#include "tests/support/seen_frames.h"
#include "transport/net/spawn.h"
#include "transport/websocket/frame_head.h"
#include "transport/websocket/read_ahead.h"
#include "transport/websocket/websocket_connection.h"

using namespace millrace;
using test::masked;

namespace {

namespace beast = boost::beast;
namespace http = beast::http;
namespace websocket = beast::websocket;

constexpr std::string_view key = "dGhlIHNhbXBsZSBub25jZQ==";

struct Seen : test::SeenFrames {
  std::string wire;  // all that it sent
};

// The input and the limits of a connection.
struct Play {
  std::vector<std::string> pieces;
  std::size_t longest = 1000;              // size limit of its messages
  std::size_t at_once = ReadBuffer::size;  // bytes read at once
  std::vector<std::string> beside = {};    // between the pieces, messages to another connection
};

Task<> read_with_ours(Socket socket, std::size_t longest, Seen& seen) {
  Upgrade upgrade{.key = std::string(key)};
  const auto connection =
      co_await accept_websocket(std::move(socket), std::move(upgrade), std::string(), longest);
  for (;;) {
    const auto received = co_await connection->receive();
    if (const auto* ended = std::get_if<Connection::Ended>(&received)) {
      // Beast reports half-closed as lost.
      constexpr std::array names{"closed", "lost", "lost", "too big", "protocol"};
      seen.end = names[static_cast<std::size_t>(ended->how)];
      if (ended->how == Connection::Ended::How::closed) seen.end += std::to_string(ended->code);
      co_return;
    }
    const auto& message = std::get<Connection::Message>(received);
    const bool is_text = message.kind == Connection::Kind::text;
    seen.messages.push_back((is_text ? "text " : "binary ") + std::string(message.text()));
  }
}

Task<> read_with_beast(Socket socket, std::size_t longest, Seen& seen) {
  websocket::stream<Socket, false> stream(std::move(socket));
  stream.read_message_max(longest);
  http::request<http::empty_body> request(http::verb::get, "/", 11);
  request.set(http::field::host, "millrace");
  request.set(http::field::upgrade, "websocket");
  request.set(http::field::connection, "upgrade");
  request.set(http::field::sec_websocket_version, "13");
  request.set(http::field::sec_websocket_key, beast::string_view(key.data(), key.size()));
  co_await stream.async_accept(request, no_throw);
  for (;;) {
    beast::flat_buffer buffer(longest + 1024);
    const auto [error, size] = co_await stream.async_read(buffer, no_throw);
    if (error) {
      seen.end = test::end_by_beast(error, stream.reason().code);
      co_return;
    }
    const auto bytes = buffer.cdata();
    seen.messages.push_back((stream.got_text() ? "text " : "binary ") +
                            std::string(static_cast<const char*>(bytes.data()), size));
  }
}

// One connection that is read, and its peer.
class Line {
 public:
  template <class Read>
  Line(net::io_context& context, Read read, std::size_t longest) : context_(context) {
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) == 0);
    end_ = ends[1];
    Task<> reading = read(Socket(context.get_executor(), Tcp::v4(), ends[0]), longest, seen);
    spawn(context.get_executor(), std::move(reading));
    settle();
  }
  ~Line() { ::close(end_); }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  void send(std::string_view bytes) {
    for (ssize_t sent = 1; !bytes.empty() && sent > 0; settle()) {
      sent = ::send(end_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  void end() {
    ::shutdown(end_, SHUT_WR);
    settle();
    settle();
    REQUIRE(seen.end != "none");
    const std::size_t answer = seen.wire.find("\r\n\r\n") + 4;
    seen.frames = test::frames_in(std::string_view(seen.wire).substr(answer));
  }

  Seen seen;

 private:
  void settle() {
    context_.restart();
    context_.poll();
    std::array<char, 4096> some{};
    for (ssize_t size = 0; (size = ::read(end_, some.data(), some.size())) > 0;)
      seen.wire.append(some.data(), static_cast<std::size_t>(size));
  }

  net::io_context& context_;
  int end_ = -1;
};

// Sends the pieces to one of the two connections.
template <class Read>
Seen seen_by(Read read, const Play& play) {
  net::io_context context{1};
  net::use_service<ReadBuffer>(context).allow(play.at_once);
  std::optional<Line> line(std::in_place, context, read, play.longest);
  std::optional<Line> beside(std::in_place, context, read, play.longest);
  for (std::size_t i = 0; i < play.pieces.size(); ++i) {
    line->send(play.pieces[i]);
    if (i < play.beside.size()) beside->send(masked(0x82, play.beside[i]));
  }
  line->end();
  beside->end();
  CHECK(std::ranges::equal(beside->seen.messages, play.beside, {}, {},
                           [](const std::string& text) { return "binary " + text; }));
  Seen seen = std::move(line->seen);
  line.reset();
  beside.reset();
  context.restart();
  context.poll();
  return seen;
}

// Random bytes that are nearly WebSocket.
class RandomFrames {
 public:
  explicit RandomFrames(unsigned seed) : random_(seed) {}

  Play play() {
    Play play;
    const bool large = one_in(3);
    if (large) play.longest = 70'000;
    if (one_in(3)) play.at_once = 4096;
    std::string all;
    for (int frames = number(1, 12); frames > 0; --frames) all += frame(large);
    if (one_in(4)) all[index(all)] = static_cast<char>(number(0, 255));
    if (one_in(8)) all.resize(index(all));
    const int most = large ? 30'000 : one_in(3) ? 3 : one_in(2) ? 40 : 5000;
    for (std::size_t at = 0; at < all.size(); at += play.pieces.back().size()) {
      const int size = play.pieces.size() < 1000 ? number(1, most) : 30'000;
      play.pieces.push_back(all.substr(at, static_cast<std::size_t>(size)));
    }
    if (one_in(2))
      for (std::size_t i = 0; i < play.pieces.size(); ++i)
        play.beside.push_back(std::string(static_cast<std::size_t>(number(0, 300)), 'b'));
    return play;
  }

 private:
  int number(int least, int most) { return std::uniform_int_distribution(least, most)(random_); }
  bool one_in(int times) { return number(1, times) == 1; }
  std::size_t index(const std::string& of) {
    return static_cast<std::size_t>(number(0, static_cast<int>(of.size()) - 1));
  }

  std::string payload(bool is_control, bool large) {
    constexpr std::array sizes{0,   1,   2,    3,    124,  125,    126,    127,
                               500, 999, 1000, 1001, 4096, 65'535, 70'000, 70'001};
    const int last = one_in(4) ? 15 : large ? 14 : 7;
    const auto size =
        static_cast<std::size_t>(is_control ? number(0, one_in(20) ? 130 : 125)
                                            : sizes[static_cast<std::size_t>(number(0, last))]);
    std::string text;
    while (text.size() < size) {
      constexpr std::array<std::string_view, 6> parts{
          "a", "bc", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xed\xa0\x80"};
      text += parts[static_cast<std::size_t>(number(0, one_in(30) ? 5 : 4))];
    }
    text.resize(size);  // perhaps within a character
    return text;
  }

  std::string close() {
    constexpr std::array codes{1000, 1001, 1005, 999, 1007, 3000, 4999, 5000, 65535};
    if (one_in(4)) return masked(0x88, "");
    const int code = codes[static_cast<std::size_t>(number(0, 8))];
    std::string text{static_cast<char>(code >> 8), static_cast<char>(code)};
    return masked(0x88, text + (one_in(2) ? "why" : one_in(4) ? "\xff" : ""));
  }

  std::string frame(bool large) {
    if (one_in(15)) return close();
    if (one_in(40)) return masked(static_cast<unsigned>(number(0, 255)), payload(false, large));
    if (one_in(5)) return masked(one_in(2) ? 0x89 : 0x8a, payload(true, large));
    const bool is_final = !one_in(4);
    const unsigned opcode = within_ ? 0 : one_in(2) ? 1 : 2;
    within_ = !is_final;
    return masked((is_final ? 0x80U : 0U) | opcode, payload(false, large));
  }

  std::mt19937 random_;
  bool within_ = false;  // a message in fragments
};

void compare(const Play& play) {
  const Seen ours = seen_by(read_with_ours, play), by_beast = seen_by(read_with_beast, play);
  if (test::agree(ours, by_beast)) return;
  CHECK(ours.messages == by_beast.messages);
  CHECK(ours.end == by_beast.end);
  CHECK(ours.frames == by_beast.frames);
  FAIL("they differ");
}

}  // namespace

TEST_CASE("the comparison with Beast allows only a better close") {
  const std::string pong = "\x8ap", much = test::close_with(5000);
  const test::SeenFrames ours{{"text a"}, "protocol", {pong, test::close_with(1002)}};
  const auto agrees = [&](const test::SeenFrames& beasts) { return test::agree(ours, beasts); };
  CHECK(agrees({{"text a"}, "protocol", {pong, much}}));
  CHECK(agrees({{"text a"}, "too big", {pong, test::close_with(1009)}}));
  CHECK_FALSE(agrees({{"text a"}, "too big", {pong, pong}}));
  CHECK_FALSE(agrees({{"text a"}, "lost", {pong, pong}}));  // no close
  CHECK_FALSE(agrees({{"text a"}, "closed1000", {pong, test::close_with(1000)}}));
  CHECK_FALSE(agrees({{"text a"}, "protocol", {much}}));
  CHECK_FALSE(agrees({{"text b"}, "protocol", {pong, much}}));
  CHECK_FALSE(agrees({{"text a", "text b"}, "protocol", {pong, much}}));
}

TEST_CASE("the comparison with Beast allows another close for a text that is not UTF-8") {
  const std::string pong = "\x8ap", close = test::close_with(1000);
  const test::SeenFrames ours{{"text a"}, "protocol", {pong, test::close_with(1007)}};
  const auto agrees = [&](const test::SeenFrames& beasts) { return test::agree(ours, beasts); };
  CHECK(agrees({{"text a"}, "protocol", {pong, test::close_with(1002)}}));  // a reason
  CHECK_FALSE(agrees({{"text a"}, "protocol", {pong, test::close_with(1001)}}));
  CHECK(agrees({{"text a", "text \xe2\x82"}, "closed1000", {pong, close}}));
  CHECK_FALSE(agrees({{"text a", "text ok"}, "closed1000", {pong, close}}));
  CHECK_FALSE(agrees({{"text a", "binary \xe2\x82"}, "closed1000", {pong, close}}));
  CHECK_FALSE(agrees({{"text a", "text \xe2\x82"}, "closed1000", {close}}));
}

TEST_CASE("the comparison with Beast allows a close with 1014") {
  const test::SeenFrames ours{{"text a"}, "closed1014", {test::close_with(1014)}};
  const auto agrees = [&](const test::SeenFrames& beasts) { return test::agree(ours, beasts); };
  CHECK(agrees({{"text a"}, "protocol", {test::close_with(1002)}}));
  CHECK_FALSE(agrees({{"text b"}, "protocol", {test::close_with(1002)}}));
  CHECK_FALSE(agrees({{"text a"}, "protocol", {test::close_with(1001)}}));
}

TEST_CASE("random bytes in random pieces are read as Beast reads them") {
  for (unsigned seed = 0; seed < 400; ++seed) {
    INFO("seed " << seed);
    compare(RandomFrames(seed).play());
  }
}

TEST_CASE("random bytes of random seeds are read as Beast reads them") {
  const unsigned begin = std::random_device{}();
  WARN("seeds from " << begin);
  for (unsigned i = 0; i < test::sampled(4000u); ++i) {
    INFO("seed " << begin + i);
    compare(RandomFrames(begin + i).play());
  }
}

TEST_CASE("a text that ends within a character is closed with 1007 by us, not by Beast") {
  const Play play{.pieces = {masked(0x01, "\xe2\x82"), masked(0x80, "")}};
  CHECK(seen_by(read_with_ours, play).frames == std::vector{test::close_with(1007)});
  CHECK(seen_by(read_with_beast, play).messages.size() == 1);  // fails once a newer Boost fixes it
}
