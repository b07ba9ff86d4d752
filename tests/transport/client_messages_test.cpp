// SPDX-License-Identifier: Apache-2.0
#include "transport/client_messages.h"

#include <catch2/catch.hpp>

using namespace millrace;
using namespace client_message;

namespace {

std::string round_trip(std::string_view text) {
  const auto message = parse_client_message(text);
  return message ? to_json(*message) : message.error();
}

}  // namespace

TEST_CASE("every command is read and written the same") {
  for (const char* text :
       {R"({"type":"flush"})", R"({"type":"flush","mark":0})",
        R"({"type":"flush","mark":9007199254740991})", R"({"type":"reset"})",
        R"({"type":"gap","frames":1600})", R"({"type":"keepalive"})", R"({"type":"end"})"})
    CHECK(round_trip(text) == text);
}

TEST_CASE("the order of members and white space do not count") {
  CHECK(round_trip(" { \"mark\" : 7 ,\n\"type\" : \"flush\" } ") == R"({"type":"flush","mark":7})");
}

TEST_CASE("what is none of the protocol is told apart") {
  CHECK(round_trip("") == "not a JSON object");
  CHECK(round_trip("[]") == "not a JSON object");
  CHECK(round_trip(R"({"type":"end"} {"type":"end"})") == "not a JSON object");
  CHECK(round_trip("{}") == "a message without a type");
  CHECK(round_trip(R"({"type":1})") == "a message without a type");
  CHECK(round_trip(R"({"type":"flash"})") == "unknown type of message");
  CHECK(round_trip(R"({"type":"end","now":true})") == "end takes nothing more");
  CHECK(round_trip(R"({"type":"flush","marks":7})") == "flush takes only mark");
  CHECK(round_trip(R"({"type":"gap"})") == "gap takes frames, and only that");
}

TEST_CASE("numbers that are none of the protocol are refused") {
  for (const char* mark :
       {"-1", "1.5", "9007199254740992", "18446744073709551616", "\"7\"", "null"})
    CHECK(round_trip(R"({"type":"flush","mark":)" + std::string(mark) + "}") ==
          "mark is no whole number from 0 to 2^53-1");
  CHECK(round_trip(R"({"type":"gap","frames":0})") == "frames is no whole number from 1 to 2^53-1");
}

TEST_CASE("a command that is deeply nested or long is refused, not followed") {
  CHECK(round_trip(std::string(60'000, '[')) == "not a JSON object");
  CHECK(round_trip("{\"type\":\"" + std::string(60'000, 'x') + "\"}") == "unknown type of message");
}
