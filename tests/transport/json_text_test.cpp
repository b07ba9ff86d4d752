// SPDX-License-Identifier: Apache-2.0
#include "transport/json_text.h"

#include <catch2/catch.hpp>

using namespace millrace;

namespace {

std::string quoted(std::string_view text) {
  std::string out;
  append_string(out, text);
  return out;
}

std::string decimal(double value) {
  std::string out;
  append_number(out, value);
  return out;
}

}  // namespace

TEST_CASE("a string is escaped where JSON asks for it, and nowhere else") {
  CHECK(quoted("grüß \"dich\"\\\n\t") == R"("grüß \"dich\"\\\n\u0009")");
  CHECK(quoted(std::string_view("\0", 1)) == R"("\u0000")");
}

TEST_CASE("seconds are written as short as they can be") {
  CHECK(decimal(4800 / 16000.0) == "0.3");
  CHECK(decimal(0) == "0");
  CHECK(decimal(1600 / 44100.0) == "0.036281179138321996");
}

TEST_CASE("one value of JSON and nothing else is JSON") {
  for (const char* good : {"1", " {\"a\":[1,2,null]} ", "\"x\"", "-1.5e3"}) CHECK(is_json(good));
  for (const char* bad : {"", "{", "1 2", "{'a':1}", "[1,]", "nul", "\"\xff\"", "NaN"})
    CHECK_FALSE(is_json(bad));
}

TEST_CASE("a value nested deeper than 64 is refused") {
  CHECK(is_json(std::string(64, '[') + std::string(64, ']')));
  CHECK_FALSE(is_json(std::string(65, '[') + std::string(65, ']')));
  CHECK_FALSE(is_json(std::string(100'000, '[')));
}

TEST_CASE("only an object is an object") {
  CHECK(is_json_object(" {}"));
  CHECK_FALSE(is_json_object("[{}]"));
  CHECK_FALSE(is_json_object("{} {}"));
  CHECK_FALSE(is_json_object(""));
}
