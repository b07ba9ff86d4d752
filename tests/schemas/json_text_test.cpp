// SPDX-License-Identifier: Apache-2.0
#include "schemas/json_text.h"

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

TEST_CASE("a string is escaped where JSON requires it, and nowhere else") {
  CHECK(quoted("grüß \"dich\"\\\n\t") == R"("grüß \"dich\"\\\n\u0009")");
  CHECK(quoted(std::string_view("\0", 1)) == R"("\u0000")");
}

TEST_CASE("seconds are written with the fewest digits") {
  CHECK(decimal(4800 / 16000.0) == "0.3");
  CHECK(decimal(0) == "0");
  CHECK(decimal(1600 / 44100.0) == "0.036281179138321996");
}

TEST_CASE("flags are named in the order of their bits") {
  std::string out;
  append_flags(out, 127);
  append_flags(out += ' ', 0);
  append_flags(out += ' ', 33);
  CHECK(out == R"(["START","RESET","SEGMENT","GAP","LAST","END","ABORT"] [] ["START","END"])");
}

TEST_CASE("a member is found as it was written, whatever precedes it") {
  CHECK(member_text(R"({"data":1.50})", "data") == "1.50");
  CHECK(member_text(R"( { "a" : "data" , "data" : [ 1e2 , {"data":0} ] } )", "data") ==
        R"([ 1e2 , {"data":0} ])");
  CHECK(member_text(R"({"a":{"data":1},"b":[[],"]"],"data":"x\"y,\\"})", "data") == R"("x\"y,\\")");
  CHECK(member_text(R"({"a":null,"data":true,"c":1})", "data") == "true");
}

TEST_CASE("merged objects have the newest value of each name, where it was given") {
  CHECK(merged_members(R"({"a":1,"b":[2,{"a":0}]})", {R"({"a":{"x":",}"},"c":3})"}) ==
        R"({"b":[2,{"a":0}],"a":{"x":",}"},"c":3})");
  CHECK(merged_members("", {R"( { "a" : 1.50 } )"}) == R"({"a":1.50})");
  CHECK(merged_members(R"({"a":1})", {"{}"}) == R"({"a":1})");
  CHECK(merged_members("{}", {"{}"}) == "{}");
  CHECK(merged_members(R"({"a":1})", {R"({"b":1,"a":2})", R"({"b":2})"}) == R"({"a":2,"b":2})");
  CHECK(merged_members("{}", {R"({"a":1,"a":2})"}) == R"({"a":2})");
  CHECK(merged_members(R"({"\"":1})", {R"({"\"":2})"}) == R"({"\"":2})");
}

TEST_CASE("other spellings of a name are kept, before the newest one") {
  CHECK(merged_members(R"({"a":1})", {R"({"\u0061":2})"}) == R"({"a":1,"\u0061":2})");
}

TEST_CASE("JSON in a line has no newlines") {
  std::string out = "a ";
  append_in_line(out, "[1,\n{\"b\":\r\n\"\\n\"}]");
  CHECK(out == "a [1, {\"b\":  \"\\n\"}]");
}

TEST_CASE("a missing member is empty") {
  CHECK(member_text("{}", "data").empty());
  CHECK(member_text("{ }", "data").empty());
  CHECK(member_text(R"({"date":1,"dat":2,"datum":3})", "data").empty());
  CHECK(member_text(R"({"a":"data"})", "data").empty());
}
