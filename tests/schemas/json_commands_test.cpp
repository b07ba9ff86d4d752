// SPDX-License-Identifier: Apache-2.0
#include "schemas/json_commands.h"

#include <catch2/catch.hpp>

using namespace millrace;
using namespace client_message;

namespace {

constexpr std::size_t longest_text = 1024;

std::string round_trip(std::string_view text) {
  const auto message = parse_client_message(text, longest_text);
  return message ? to_json(*message) : message.error();
}

}  // namespace

TEST_CASE("every command is read and written the same") {
  for (const char* text :
       {R"({"type":"flush"})", R"({"type":"flush","mark":0})",
        R"({"type":"flush","mark":9007199254740991})", R"({"type":"reset"})",
        R"({"type":"gap","frames":1600})", R"({"type":"keepalive"})", R"({"type":"end"})",
        R"({"type":"message","data":{"data":[1.50,"\u0041"],"type":7}})",
        R"({"type":"message","data":null})", R"({"type":"set","options":{"a":[1],"b":{}}})",
        R"({"type":"ack","n":7})"})
    CHECK(round_trip(text) == text);
}

TEST_CASE("the order of members and white space have no effect") {
  CHECK(round_trip(" { \"mark\" : 7 ,\n\"type\" : \"flush\" } ") == R"({"type":"flush","mark":7})");
}

TEST_CASE("a text that is not a command is refused with a reason") {
  const std::string no_object = "must be a JSON object; send frames in binary messages";
  CHECK(round_trip("") == no_object);
  CHECK(round_trip("[]") == no_object);
  CHECK(round_trip(R"([{"type":"end"}])") == no_object);
  CHECK(round_trip("AAECAwQFBgc=") == no_object);
  CHECK(round_trip(R"({"type":"end"} {"type":"end"})") == no_object);
  CHECK(round_trip("{}") == "a command must have a type, a string");
  CHECK(round_trip(R"({"type":1})") == "a command must have a type, a string");
  CHECK(round_trip(R"({"type":"flash"})") ==
        "unknown type; must be flush, gap, reset, message, set, keepalive, end or ack");
  CHECK(round_trip(R"({"type":"end","now":true})") == "end must have no other key");
  CHECK(round_trip(R"({"type":"flush","marks":7})") == "flush must have no key other than mark");
  for (const char* ack : {R"({"type":"ack"})", R"({"type":"ack","n":-1})",
                          R"({"type":"ack","n":1,"mark":1})", R"({"type":"ack","n":"1"})"})
    CHECK(round_trip(ack) ==
          "ack must have the key n, a whole number from 0 to 2^53-1, and no other");
  CHECK(round_trip(R"({"type":"gap"})") == "gap must have the key frames, and no other");
}

TEST_CASE("numbers out of their range are refused") {
  for (const char* mark :
       {"-1", "1.5", "9007199254740992", "18446744073709551616", "\"7\"", "null"})
    CHECK(round_trip(R"({"type":"flush","mark":)" + std::string(mark) + "}") ==
          "mark must be a whole number from 0 to 2^53-1");
  CHECK(round_trip(R"({"type":"gap","frames":0})") ==
        "frames must be a whole number from 1 to 2^53-1");
}

TEST_CASE("an acknowledgement is the same in its usual form and in any other") {
  const auto parsed = [](const std::string& n) {
    const std::string usual = round_trip(R"({"type":"ack","n":)" + n + "}");
    CHECK(usual == round_trip(R"({"type": "ack", "n": )" + n + "}"));
    CHECK(usual == round_trip(R"({"n":)" + n + R"(,"type":"ack"})"));
    return usual;
  };
  CHECK(parsed("0") == R"({"type":"ack","n":0})");
  CHECK(parsed("9007199254740991") == R"({"type":"ack","n":9007199254740991})");
  for (const char* n : {"9007199254740992", "18446744073709551616", "-1", "-0.5", "1.5", "[1]"})
    CHECK(parsed(n) == "ack must have the key n, a whole number from 0 to 2^53-1, and no other");
  CHECK(parsed("-0") == R"({"type":"ack","n":0})");
  for (const char* n : {"", "01", "+1", "1 2", "0x1"}) CHECK(parsed(n) == "must be valid JSON");
}

TEST_CASE("a repeated key is refused, also if it is written with an escape") {
  CHECK(round_trip(R"({"type":"end","type":"flush"})") == "a key is given twice");
  CHECK(round_trip(R"({"type":"end","t\u0079pe":"end"})") == "a key is given twice");
  CHECK(round_trip(R"({"type":"flush","mark":1,"mark":1})") == "a key is given twice");
}

TEST_CASE("members inside a value are not members of the command") {
  CHECK(round_trip(R"({"x":{"type":"end"}})") == "a command must have a type, a string");
  CHECK(round_trip(R"({"type":{"type":"end"}})") == "a command must have a type, a string");
  CHECK(round_trip(R"({"type":"end","x":["type"]})") == "end must have no other key");
  CHECK(round_trip(R"({"type":"flush","mark":[7]})") ==
        "mark must be a whole number from 0 to 2^53-1");
}

TEST_CASE("the data of a message is any JSON value, exactly as it was written") {
  const auto data_of = [](std::string_view text) {
    const auto message = parse_client_message(text, longest_text);
    REQUIRE(message.has_value());
    return std::get<Message>(*message).data;
  };
  CHECK(data_of(R"( { "data" : [ 1.0, {"mark":-1} ] , "type":"message" } )") ==
        R"([ 1.0, {"mark":-1} ])");
  const std::string deep = std::string(24, '[') + std::string(24, ']');
  CHECK(data_of(R"({"type":"message","data":)" + deep + "}") == deep);
  CHECK(round_trip(R"({"type":"message","data":[)" + deep + "]}") ==
        "data and options must be nested at most 24 deep");
  CHECK(round_trip(R"({"type":"message","data":[})") == "must be valid JSON");
  const std::string refused =
      "message must have the key data, written without escapes, and no other";
  CHECK(round_trip(R"({"type":"message"})") == refused);
  CHECK(round_trip(R"({"type":"message","d\u0061ta":1})") == refused);
  CHECK(round_trip(R"({"type":"message","data":1,"mark":1})") == refused);
  CHECK(round_trip(R"({"type":"message","data":1,"data":2})") == "a key is given twice");
  const std::string no_set =
      "set must have the key options, written without escapes, an object, and no other";
  CHECK(round_trip(R"({"type":"set"})") == no_set);
  CHECK(round_trip(R"({"type":"set","options":[]})") == no_set);
  CHECK(round_trip(R"({"type":"set","options":{},"data":1})") == no_set);
  CHECK(round_trip(R"({"type":"reset","data":1})") == "reset must have no other key");
}

TEST_CASE("a deeply nested command is refused without recursion") {
  CHECK(round_trip(std::string(1000, '[')) ==
        "must be a JSON object; send frames in binary messages");
}

TEST_CASE("a text longer than any command is refused before it is parsed") {
  const std::string end = R"({"type":"end"})";
  CHECK(round_trip(end + std::string(longest_text - end.size(), ' ')) == end);
  const std::string refused =
      "a text message must be a command of at most 1024 bytes; send frames in binary messages";
  CHECK(round_trip(end + std::string(longest_text + 1 - end.size(), ' ')) == refused);
  CHECK(round_trip(std::string(60'000, '[')) == refused);
}
