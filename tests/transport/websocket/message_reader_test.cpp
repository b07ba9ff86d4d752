// SPDX-License-Identifier: Apache-2.0
// RFC 6455 as a table of bytes and the events they yield. The tags are the classes of the Autobahn
// test suite: 1 framing, 2 pings and pongs, 3 reserved bits, 4 opcodes, 5 fragments, 6 UTF-8, 7
// closes, 9 limits, 10 splits.
#include "transport/websocket/message_reader.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <span>
#include <string>
#include <vector>

#include "tests/support/allocations.h"
#include "tests/support/masked.h"

using namespace millrace;
using namespace std::string_literals;
using test::masked;

namespace {

constexpr std::size_t longest = 70'000;

std::string unmasked(unsigned first, const std::string& payload) {
  std::string frame;
  FrameHead::append(frame, static_cast<std::uint8_t>(first), payload.size());
  return frame + payload;
}
std::string closing(unsigned code, const std::string& reason = {}) {
  return masked(0x88, std::string{static_cast<char>(code >> 8), static_cast<char>(code)} + reason);
}

std::string name_of(const MessageReader::Event& event) {
  struct {
    std::string operator()(const MessageReader::Message& message) const {
      return std::string(message.is_text ? "text " : "binary ").append(text_in(message.bytes));
    }
    std::string operator()(const MessageReader::Ping& ping) const {
      return std::string("ping ").append(text_in(ping.payload));
    }
    std::string operator()(const MessageReader::Pong&) const { return "pong"; }
    std::string operator()(const MessageReader::Close& close) const {
      return "close " + std::to_string(close.code) + (close.reason.empty() ? "" : " ") +
             std::string(close.reason);
    }
    std::string operator()(const MessageReader::Fault& fault) const {
      return "fault " + std::to_string(fault.code);
    }
  } constexpr name;
  return std::visit(name, event);
}

using Events = std::vector<std::string>;

// The events read when the bytes arrive in pieces of `size`, up to a close or a fault.
Events read(std::string bytes, std::size_t size, std::size_t in_place = longest,
            Role role = Role::server) {
  MessageReader reader(role, longest, in_place);
  Events events;
  std::string unread;
  for (std::size_t at = 0; at < bytes.size(); at += size) {
    unread += bytes.substr(at, size);
    MutableBytes rest = std::as_writable_bytes(std::span(unread));
    while (const auto event = reader.next(rest)) {
      events.push_back(name_of(*event));
      if (event->index() >= 3) return events;
    }
    unread = text_in(rest);
  }
  return events;
}

struct Case {
  const char* what;
  std::string bytes;
  Events events;
};

void check(const std::vector<Case>& cases) {
  for (const auto& [what, bytes, events] : cases) {
    INFO(what);
    CHECK(read(bytes, bytes.size()) == events);
    CHECK(read(bytes, bytes.size(), 0) == events);
    if (bytes.size() < 1000) {
      CHECK(read(bytes, 1) == events);
      CHECK(read(bytes, 1, 0) == events);
    } else {
      CHECK(read(bytes, 997) == events);
      CHECK(read(bytes, 997, 0) == events);
    }
  }
}

const std::string ping = masked(0x89, "p");
const Events wrong{"fault 1002"}, no_text{"fault 1007"}, too_big{"fault 1009"};

Case text_case(const char* what, const std::string& text, bool good) {
  return {what, masked(0x81, text), good ? Events{"text " + text} : no_text};
}
Case code_case(unsigned code, bool good) {
  return {"a close code", closing(code), good ? Events{"close " + std::to_string(code)} : wrong};
}

}  // namespace

TEST_CASE("messages of every length in one frame are read", "[1]") {
  for (const std::size_t size : {0, 1, 125, 126, 127, 128, 4096, 65'535, 65'536, 70'000}) {
    const std::string text(size, 'x');
    check({{"text", masked(0x81, text), {"text " + text}},
           {"binary", masked(0x82, text) + ping, {"binary " + text, "ping p"}}});
  }
}

TEST_CASE("pings and pongs of up to 125 bytes are read", "[2]") {
  check({
      {"without a payload", masked(0x89, ""), {"ping "}},
      {"with one", masked(0x89, "Hello"), {"ping Hello"}},
      {"with bytes that are no text", masked(0x89, "\0\xff\xfe"s), {"ping \0\xff\xfe"s}},
      {"with 125 bytes", masked(0x89, std::string(125, 'p')), {"ping " + std::string(125, 'p')}},
      {"with 126 bytes", masked(0x89, std::string(126, 'p')), wrong},
      {"an unsolicited pong", masked(0x8a, "") + ping, {"pong", "ping p"}},
      {"three pings", ping + ping + ping, {"ping p", "ping p", "ping p"}},
  });
}

TEST_CASE("a frame with a reserved bit is a fault", "[3]") {
  for (const unsigned bits : {0x10u, 0x20u, 0x30u, 0x40u, 0x50u, 0x60u, 0x70u})
    for (const unsigned opcode : {0x1u, 0x2u, 0x8u, 0x9u, 0xau})
      check({{"alone", masked(0x80 | bits | opcode, ""), wrong},
             {"behind a message",
              masked(0x81, "Hello") + masked(0x80 | bits | opcode, "x"),
              {"text Hello", "fault 1002"}}});
}

TEST_CASE("a frame with a reserved opcode is a fault", "[4]") {
  for (const unsigned opcode : {3u, 4u, 5u, 6u, 7u, 0xbu, 0xcu, 0xdu, 0xeu, 0xfu})
    check({{"without a payload", masked(0x80 | opcode, ""), wrong},
           {"with one", masked(0x80 | opcode, "x") + ping, wrong},
           {"not final", masked(opcode, "x"), wrong}});
}

TEST_CASE("a frame without a mask, or with a wrong length, is a fault", "[1]") {
  check({
      {"no mask", unmasked(0x82, "x"), wrong},
      {"no mask on a ping", unmasked(0x89, ""), wrong},
      {"125 in 16 bits", "\x82\xfe\0\x7dKEY!"s, wrong},
      {"65535 in 64 bits", "\x82\xff\0\0\0\0\0\0\xff\xffKEY!"s, wrong},
      {"the first bit of 64", "\x82\xff\x80\0\0\0\0\0\0\0KEY!"s, wrong},
      {"2^64 - 1", "\x82\xff\xff\xff\xff\xff\xff\xff\xff\xffKEY!"s, wrong},
      {"2^63 - 1", "\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xffKEY!"s, too_big},
      {"a ping with 16 bits", "\x89\xfe\0\x7eKEY!"s, wrong},
  });
}

TEST_CASE("a client reads unmasked frames, and a masked one is a fault", "[1]") {
  const auto read_as_client = [](const std::string& bytes) {
    return read(bytes, 1, 0, Role::client);
  };
  CHECK(read_as_client(unmasked(0x81, "Hello")) == Events{"text Hello"});
  CHECK(read_as_client(unmasked(0x01, "He") + unmasked(0x80, "llo")) == Events{"text Hello"});
  CHECK(read_as_client(masked(0x81, "Hello")) == wrong);
  CHECK(read_as_client(unmasked(0x88, "\x03\xe8")) == Events{"close 1000"});
}

TEST_CASE("fragments are joined, and wrong sequences are a fault", "[5]") {
  check({
      {"a ping in two", masked(0x09, "a") + masked(0x80, "b"), wrong},
      {"a pong in two", masked(0x0a, "a") + masked(0x80, "b"), wrong},
      {"a close in two", masked(0x08, "\x03\xe8"), wrong},
      {"a text in two", masked(0x01, "He") + masked(0x80, "llo"), {"text Hello"}},
      {"bytes in three", masked(0x02, "a") + masked(0, "b") + masked(0x80, "c"), {"binary abc"}},
      {"a ping between", masked(0x01, "He") + ping + masked(0x80, "llo"), {"ping p", "text Hello"}},
      {"a pong between",
       masked(0x01, "a") + masked(0x8a, "") + masked(0x80, ""),
       {"pong", "text a"}},
      {"a close between", masked(0x01, "He") + closing(1000), {"close 1000"}},
      {"an empty text in three", masked(0x01, "") + masked(0, "") + masked(0x80, ""), {"text "}},
      {"a final continuation without a message", masked(0x80, "x"), wrong},
      {"a continuation without a message", masked(0, "x"), wrong},
      {"behind a message", masked(0x81, "a") + masked(0x80, "b"), {"text a", "fault 1002"}},
      {"two messages at once", masked(0x01, "a") + masked(0x81, "b"), wrong},
      {"two that are not final", masked(0x02, "a") + masked(0x02, "b"), wrong},
      {"one message after the other",
       masked(0x01, "a") + masked(0x80, "b") + masked(0x02, "c") + masked(0x80, "d"),
       {"text ab", "binary cd"}},
  });
}

TEST_CASE("a text message must be UTF-8", "[6]") {
  const std::string greek = "\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5";
  check({
      text_case("ASCII", "Hello", true),
      text_case("greek", greek, true),
      text_case("a surrogate", greek + "\xed\xa0\x80", false),
      text_case("the first of 1 byte", "\0"s, true),
      text_case("the first of 2", "\xc2\x80", true),
      text_case("the first of 3", "\xe0\xa0\x80", true),
      text_case("the first of 4", "\xf0\x90\x80\x80", true),
      text_case("the last of 1", "\x7f", true),
      text_case("the last of 2", "\xdf\xbf", true),
      text_case("the last of 3", "\xef\xbf\xbf", true),
      text_case("the last of 4", "\xf4\x8f\xbf\xbf", true),
      text_case("above it", "\xf4\x90\x80\x80", false),
      text_case("5 bytes", "\xf8\x88\x80\x80\x80", false),
      text_case("6 bytes", "\xfc\x84\x80\x80\x80\x80", false),
      text_case("a byte that continues nothing", "\x80", false),
      text_case("half a character", "\xe2\x82", false),
      text_case("one that is cut by a letter", "\xe2\x82x", false),
      text_case("more bytes than needed", "\xc0\xaf", false),
      text_case("many more", "\xf0\x80\x80\xaf", false),
      text_case("around the surrogates", "\xed\x9f\xbf\xee\x80\x80", true),
      text_case("the last surrogate", "\xed\xbf\xbf", false),
      {"a character in two fragments",
       masked(0x01, "\xe2\x82") + masked(0x80, "\xac"),
       {"text \xe2\x82\xac"}},
      {"one that is not continued", masked(0x01, "\xe2\x82") + masked(0x80, "x"), no_text},
      {"one that ends with an empty fragment", masked(0x01, "\xe2\x82") + masked(0x80, ""),
       no_text},
      {"bytes are no text", masked(0x02, "\xff") + masked(0x80, "\xfe"), {"binary \xff\xfe"}},
  });
}

TEST_CASE("a text that is not UTF-8 is a fault before its end", "[6]") {
  for (const auto& begin : {"a\xf5"s, "\xce\xba\xed\xa0"s, "\xf4\x90"s, "\xe0\x80"s}) {
    const std::string frame = masked(0x01, begin + "more");
    CHECK(read(frame.substr(0, 6 + begin.size()), 1) == no_text);
    CHECK(read(masked(0x01, begin), 100) == no_text);
  }
}

TEST_CASE("a close has no code or a valid one, and a reason in UTF-8", "[7]") {
  check({
      {"without a code", masked(0x88, ""), {"close 1005"}},
      {"half a code", masked(0x88, "\x03"), wrong},
      {"with a reason", closing(1000, "bye"), {"close 1000 bye"}},
      {"with the longest reason",
       closing(1000, std::string(123, 'x')),
       {"close 1000 " + std::string(123, 'x')}},
      {"with a longer one", closing(1000, std::string(124, 'x')), wrong},
      {"a reason that is no UTF-8", closing(1000, "\xff"), no_text},
      {"a reason that ends within a character", closing(1000, "\xe2\x82"), no_text},
      {"behind a message", masked(0x81, "a") + closing(1000), {"text a", "close 1000"}},
  });
  for (const unsigned code : {1000u, 1001u, 1002u, 1003u, 1007u, 1008u, 1009u, 1010u, 1011u, 1012u,
                              1013u, 1014u, 3000u, 3999u, 4000u, 4999u})
    check({code_case(code, true)});
  for (const unsigned code :
       {0u, 999u, 1004u, 1005u, 1006u, 1015u, 1016u, 1100u, 2000u, 2999u, 5000u, 65'535u})
    check({code_case(code, false)});
}

TEST_CASE("limits are checked at the head of a frame", "[9]") {
  const std::string text(longest, 'x'), more(longest + 1, 'x');
  check({
      {"a message over the limit", masked(0x82, more), too_big},
      {"only its head", masked(0x82, more).substr(0, 14), too_big},
      {"fragments at the limit", masked(0x02, text) + masked(0x80, ""), {"binary " + text}},
      {"fragments over it", masked(0x02, text) + masked(0x80, "x").substr(0, 6), too_big},
      {"a message after a long one",
       masked(0x02, text) + masked(0x80, "") + masked(0x82, text),
       {"binary " + text, "binary " + text}},
  });
  MessageReader reader(Role::server, 1 << 30, 0);
  std::string begin = "\x82\xff\0\0\0\0\x20\0\0\0KEY!"s;  // 512 MiB
  MutableBytes rest = std::as_writable_bytes(std::span(begin));
  const std::size_t before = test::allocations();
  CHECK_FALSE(reader.next(rest));
  CHECK(test::allocations() == before);
  CHECK(rest.empty());
  CHECK(reader.within_message());
}

TEST_CASE("a message in one frame is copied only if it is in parts and does not fit", "[9]") {
  MessageReader reader(Role::server, longest, 100);
  std::string frame = masked(0x82, std::string(90, 'x'));
  const std::size_t before = test::allocations();
  MutableBytes part = std::as_writable_bytes(std::span(frame)).first(50);
  CHECK_FALSE(reader.next(part));
  CHECK(part.size() == 50);  // not removed
  MutableBytes all = std::as_writable_bytes(std::span(frame));
  const auto event = reader.next(all);
  REQUIRE(event);
  CHECK(std::get<MessageReader::Message>(*event).bytes.data() ==
        std::as_bytes(std::span(frame)).data() + 6);
  CHECK(test::allocations() == before);

  std::string longer = masked(0x82, std::string(95, 'x'));
  part = std::as_writable_bytes(std::span(longer)).first(50);
  CHECK_FALSE(reader.next(part));
  CHECK(part.empty());
}

TEST_CASE("the memory of a gathered message is limited, and all but 8 KiB is freed after it",
          "[9]") {
  MessageReader reader(Role::server, longest, longest);
  std::size_t most = 0, messages = 0;
  const auto read_one = [&](std::string bytes) {
    MutableBytes rest = std::as_writable_bytes(std::span(bytes));
    while (const auto event = reader.next(rest)) ++messages;
    most = std::max(most, reader.memory());
  };
  for (std::size_t size = 0; size < 69'000; size += 1000)
    read_one(masked(size == 0 ? 0x02 : 0x00, std::string(1000, 'x')));
  CHECK(most >= 69'000);
  CHECK(most <= longest);
  read_one(masked(0x80, "last") + masked(0x82, "in place"));
  CHECK(messages == 2);
  CHECK(reader.memory() <= 8192);

  std::string text = masked(0x01, std::string(60'000, 'x')) + masked(0x80, "");
  MutableBytes rest = std::as_writable_bytes(std::span(text));
  REQUIRE(reader.next(rest));
  CHECK(reader.memory() >= 60'000);
  reader.forget_message();
  CHECK(reader.memory() <= 8192);
}

TEST_CASE("within_message() is true from the first fragment to the last", "[10]") {
  MessageReader reader(Role::server, longest, longest);
  const auto after = [&](std::string bytes) {
    MutableBytes rest = std::as_writable_bytes(std::span(bytes));
    while (reader.next(rest)) continue;
    return reader.within_message();
  };
  CHECK_FALSE(after(masked(0x82, "a") + ping));
  CHECK(after(masked(0x02, "a") + ping));
  CHECK(after(masked(0, "b")));
  CHECK_FALSE(after(masked(0x80, "c")));
}
