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
