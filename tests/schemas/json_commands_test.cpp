// SPDX-License-Identifier: Apache-2.0
#include "schemas/json_commands.h"

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
  const std::string no_object = "not a JSON object; audio goes in binary messages";
  CHECK(round_trip("") == no_object);
  CHECK(round_trip("[]") == no_object);
  CHECK(round_trip(R"([{"type":"end"}])") == no_object);
  CHECK(round_trip("AAECAwQFBgc=") == no_object);
  CHECK(round_trip(R"({"type":"end"} {"type":"end"})") == no_object);
  CHECK(round_trip("{}") == "a command needs a type, which is a string");
  CHECK(round_trip(R"({"type":1})") == "a command needs a type, which is a string");
  CHECK(round_trip(R"({"type":"flash"})") == "unknown type of message");
  CHECK(round_trip(R"({"type":"end","now":true})") == "end takes no other members");
  CHECK(round_trip(R"({"type":"flush","marks":7})") == "flush takes only mark");
  CHECK(round_trip(R"({"type":"gap"})") == "gap takes frames, and only that");
}

TEST_CASE("numbers that are none of the protocol are refused") {
  for (const char* mark :
       {"-1", "1.5", "9007199254740992", "18446744073709551616", "\"7\"", "null"})
    CHECK(round_trip(R"({"type":"flush","mark":)" + std::string(mark) + "}") ==
          "mark must be a whole number from 0 to 2^53-1");
  CHECK(round_trip(R"({"type":"gap","frames":0})") ==
        "frames must be a whole number from 1 to 2^53-1");
}

TEST_CASE("a key that is there twice is refused, also with an escape in it") {
  CHECK(round_trip(R"({"type":"end","type":"flush"})") == "a key is there twice");
  CHECK(round_trip(R"({"type":"end","t\u0079pe":"end"})") == "a key is there twice");
  CHECK(round_trip(R"({"type":"flush","mark":1,"mark":1})") == "a key is there twice");
}

TEST_CASE("members inside of a value are none of the command") {
  CHECK(round_trip(R"({"x":{"type":"end"}})") == "a command needs a type, which is a string");
  CHECK(round_trip(R"({"type":{"type":"end"}})") == "a command needs a type, which is a string");
  CHECK(round_trip(R"({"type":"end","x":["type"]})") == "end takes no other members");
  CHECK(round_trip(R"({"type":"flush","mark":[7]})") ==
        "mark must be a whole number from 0 to 2^53-1");
}

TEST_CASE("a command that is deeply nested is refused, not followed") {
  CHECK(round_trip(std::string(1000, '[')) == "not a JSON object; audio goes in binary messages");
}

TEST_CASE("a text longer than any command is refused before it is parsed") {
  const std::string end = R"({"type":"end"})";
  CHECK(round_trip(end + std::string(longest_command - end.size(), ' ')) == end);
  const std::string refused =
      "a text message is a command of at most 1024 bytes; audio goes in binary messages";
  CHECK(round_trip(end + std::string(longest_command + 1 - end.size(), ' ')) == refused);
  CHECK(round_trip(std::string(60'000, '[')) == refused);
}
