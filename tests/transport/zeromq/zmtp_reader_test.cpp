// SPDX-License-Identifier: Apache-2.0
#include "transport/zeromq/zmtp_reader.h"

#include <catch2/catch.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/allocations.h"

using namespace millrace;
using namespace millrace::test;
using namespace std::string_literals;

namespace {

using Found = ZmtpReader::Found;
using Lines = std::vector<std::string>;

const std::string greeting = "\xff\0\0\0\0\0\0\0\1\x7f\3\1NULL"s + std::string(48, '\0');

std::string command(const std::string& body) {
  return "\6\0\0\0\0\0\0"s + static_cast<char>(body.size() >> 8) + static_cast<char>(body.size()) +
         body;
}
std::string ready(const std::string& type = "DEALER", const std::string& more = "") {
  return command("\5READY\13Socket-Type\0\0\0"s + static_cast<char>(type.size()) + type + more);
}

// The elements in these bytes when they arrive in pieces of `size`, a line each.
Lines found_in(std::string_view bytes, std::size_t size = 1 << 20, std::size_t max_message = 1000) {
  ZmtpReader reader(max_message);
  Lines lines;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(size, bytes.size()))) {
    Bytes piece = std::as_bytes(std::span(bytes.substr(0, size)));
    while (!piece.empty()) {
      switch (reader.next(piece)) {
        case Found::nothing: break;
        case Found::greeting: lines.push_back("greeting"); break;
        case Found::ready: lines.push_back("ready " + reader.name()); break;
        case Found::message:
          lines.push_back("message " + std::string(reader.take_message().text()));
          break;
        case Found::parts: lines.push_back("parts"); break;
        case Found::ping: lines.push_back("ping " + std::string(reader.context())); break;
        case Found::endless: return lines.push_back("endless"), lines;
        case Found::wrong: return lines.push_back("wrong"), lines;
      }
    }
  }
  return lines;
}

Lines after_handshake(const std::string& bytes, std::size_t max_message = 1000) {
  Lines lines = found_in(greeting + ready() + bytes, 1 << 20, max_message);
  REQUIRE(lines.size() >= 2);
  lines.erase(lines.begin(), lines.begin() + 2);
  return lines;
}

}  // namespace

TEST_CASE("bytes are read the same in pieces of any size") {
  const std::string bytes = greeting + ready("REQ", "\10Identity\0\0\0\3abc"s) + "\0\5hello"s +
                            "\4\7\4PING\0\x3c"s + "\1\2aa\4\5\4PONG\1\0\0\1b"s +
                            "\4\11\4PING\0\x3cxy"s + "\2\0\0\0\0\0\0\3\xe8"s +
                            std::string(1000, 'x') + "\0\0"s;
  const Lines expected{"greeting",
                       "ready abc",
                       "message hello",
                       "ping ",
                       "parts",
                       "ping xy",
                       "message " + std::string(1000, 'x'),
                       "message "};
  for (std::size_t size = 1; size < 100; ++size) CHECK(found_in(bytes, size) == expected);
  CHECK(found_in(bytes) == expected);
}

TEST_CASE("only ZMTP 3 with the mechanism NULL is accepted") {
  CHECK(found_in("GET / HTTP/1.1\r\n") == Lines{"wrong"});
  CHECK(found_in(std::string(64, '\0')) == Lines{"wrong"});
  CHECK(found_in("\xff\0\0\0\0\0\0\0\1\x7f\1"s) == Lines{"wrong"});
  CHECK(found_in("\xff\0\0\0\0\0\0\0\1\x7f\2"s) == Lines{"wrong"});
  for (const std::string& mechanism : {"PLAIN"s, "CURVE"s, "NUL"s, "NULLX"s}) {
    std::string other = greeting;
    other.replace(12, 5, mechanism + std::string(5 - mechanism.size(), '\0'));
    CHECK(found_in(other) == Lines{"wrong"});
  }
}

TEST_CASE("PING is known from ZMTP 3.1 on") {
  const auto knows_ping = [](char major, char minor) {
    std::string bytes = greeting;
    bytes[10] = major, bytes[11] = minor;
    ZmtpReader reader(1000);
    Bytes rest = std::as_bytes(std::span(bytes));
    CHECK(reader.next(rest) == Found::greeting);
    return reader.knows_ping();
  };
  CHECK_FALSE(knows_ping(3, 0));
  CHECK(knows_ping(3, 1));
  CHECK(knows_ping(3, 2));
  CHECK(knows_ping(4, 0));
}

TEST_CASE("a handshake that is not one READY of a DEALER, REQ or ROUTER is wrong") {
  for (const std::string& wrong :
       {"\0\5hello"s, ready("PUB"), ready(""), command("\5READY"), command("\5ERROR\0"s),
        command("\5REA"), command(""), ready("DEALER", "\10Identity\0\0\0\5abc"s),
        ready("DEALER", "\1x"), ready("DEALER", "\377"), ready("DEALER", "\1x\377\377\377\377"s),
        "\7\0\0\0\0\0\0\0\6\5READY"s, "\x0c\6\5READY"s})
    CHECK(found_in(greeting + wrong) == Lines{"greeting", "wrong"});
}

TEST_CASE("a routing id has at most 255 bytes and does not begin with a zero byte") {
  const auto with_name = [](const std::string& name) {
    return found_in(greeting +
                    ready("DEALER", "\10identity\0\0"s + static_cast<char>(name.size() >> 8) +
                                        static_cast<char>(name.size()) + name));
  };
  CHECK(with_name(std::string(255, 'x')) == Lines{"greeting", "ready " + std::string(255, 'x')});
  CHECK(with_name(std::string(256, 'x')) == Lines{"greeting", "wrong"});
  CHECK(with_name("\0\0\0\0\1"s) == Lines{"greeting", "wrong"});
}

TEST_CASE("a handshake of more than 4 KiB is wrong as soon as its length is read") {
  CHECK(found_in(greeting + "\6\0\0\0\0\0\0\x0f\xb7"s) == Lines{"greeting"});
  CHECK(found_in(greeting + "\6\0\0\0\0\0\0\x0f\xb8"s) == Lines{"greeting", "wrong"});
  CHECK(found_in(greeting + "\6\377\377\377\377\377\377\377\377"s) == Lines{"greeting", "wrong"});
}

TEST_CASE("messages and commands have limits, which hold for the length that is declared") {
  CHECK(after_handshake("\2\0\0\0\0\0\0\3\xe8"s).empty());
  CHECK(after_handshake("\2\0\0\0\0\0\0\3\xe9"s) == Lines{"wrong"});
  CHECK(after_handshake("\3\0\0\0\0\0\0\3\xe9"s) == Lines{"wrong"});
  CHECK(after_handshake("\6\0\0\0\0\0\0\x10\0"s) == Lines{"wrong"});
  CHECK(after_handshake("\4\6\4PING\0"s) == Lines{"wrong"});
  CHECK(after_handshake("\4\x18\4PING\0\0"s + std::string(17, 'x')) == Lines{"wrong"});
  CHECK(after_handshake(command("\5ERROR\0"s)) == Lines{"wrong"});
  CHECK(after_handshake("\5\5\4PONG"s) == Lines{"wrong"});
  CHECK(after_handshake("\x08\1x"s) == Lines{"wrong"});
}

TEST_CASE("an unknown command is ignored") {
  CHECK(after_handshake("\4\6\5HELLO\0\1x"s) == Lines{"message x"});
}

TEST_CASE("an unfinished message uses no more memory than it has bytes") {
  constexpr std::size_t size = 72 * 1024;
  ZmtpReader reader(size);
  const std::string bytes = greeting + ready() + "\2\0\0\0\0\0\1\x20\0"s + std::string(size, 'x');
  const Scarcity scarcity(size + 1024);
  Found found = Found::nothing;
  for (std::size_t at = 0; at < bytes.size(); at += 1000) {
    Bytes piece = std::as_bytes(
        std::span(bytes).subspan(at).first(std::min<std::size_t>(1000, bytes.size() - at)));
    while (!piece.empty()) found = reader.next(piece);
  }
  CHECK(found == Found::message);
}

TEST_CASE("the parts of a message of several parts are not kept") {
  std::string parts;
  for (int i = 0; i < 1000; ++i) parts += "\1\0\1\6abcdef"s;
  ZmtpReader reader(64);
  std::string bytes = greeting + ready();
  Bytes handshake = std::as_bytes(std::span(bytes));
  while (!handshake.empty()) (void)reader.next(handshake);
  const std::uint64_t before = allocations();
  Bytes rest = std::as_bytes(std::span(parts));
  while (!rest.empty()) CHECK(reader.next(rest) == Found::nothing);
  CHECK(allocations() == before);
  CHECK(reader.is_within());
  rest = std::as_bytes(std::span("\0\0", 2));
  CHECK(reader.next(rest) == Found::parts);
  CHECK_FALSE(reader.is_within());
}

TEST_CASE("a message of several parts is endless at 256 KiB above the limit of a message") {
  std::string parts;
  for (int i = 0; i < (1000 + 256 * 1024) / 2; ++i) parts += "\1\0"s;
  CHECK(after_handshake(parts).empty());
  CHECK(after_handshake(parts + "\1\0"s) == Lines{"endless"});
}

TEST_CASE("the limit of messages can be raised") {
  ZmtpReader reader(1);
  std::string bytes = greeting + ready();
  Bytes rest = std::as_bytes(std::span(bytes));
  while (!rest.empty()) (void)reader.next(rest);
  reader.set_max_message(2);
  rest = std::as_bytes(std::span("\0\2xx", 4));
  CHECK(reader.next(rest) == Found::message);
}
