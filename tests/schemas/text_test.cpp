// SPDX-License-Identifier: Apache-2.0
#include "schemas/text.h"

#include <catch2/catch.hpp>
#include <string>

using namespace millrace;
using namespace std::string_literals;

TEST_CASE("UTF-8 has the shortest form of each character, and no surrogates") {
  for (const auto& text : {""s, "abc"s, "\xc3\xa9"s, "\xe2\x82\xac"s, "\xf0\x9f\x8e\xa4"s, "\0"s,
                           "\xf4\x8f\xbf\xbf"s, "\xed\x9f\xbf"s})
    CHECK(is_utf8(text));
  for (const auto& text : {"\x80"s, "\xc3"s, "\xc0\xaf"s, "\xe0\x9f\xbf"s, "\xed\xa0\x80"s,
                           "\xf0\x8f\xbf\xbf"s, "\xf4\x90\x80\x80"s, "\xf5\x80\x80\x80"s, "a\xff"s})
    CHECK_FALSE(is_utf8(text));
}

TEST_CASE("text is cut between two characters") {
  const std::string text = "a\xc3\xa9\xf0\x9f\x8e\xa4";
  const std::size_t sizes[] = {0, 1, 1, 3, 3, 3, 3, 7, 7};
  for (std::size_t most = 0; most < std::size(sizes); ++most)
    CHECK(cut_text(text, most) == text.substr(0, sizes[most]));
  CHECK(cut_text("\x80\x80\x80", 2).empty());
}

TEST_CASE("JSON is exactly one value") {
  for (const auto* text :
       {"null", " {\"a\":[1,2.5,\"x\"]} ", "3", "12", "-0.5e3", "\"\\u00e9\"", "true"})
    CHECK(is_json(text));
  for (const auto* text : {"", " ", "{", "nul", "NaN", "1 2", "{}{}", "{'a':1}", "[1,]", "\"\xff\"",
                           "\"a\nb\"", "1,\"type\":\"closed\"", "// c\n1"})
    CHECK_FALSE(is_json(text));
}

TEST_CASE("JSON is nested at most 32 levels deep") {
  CHECK(is_json(std::string(32, '[') + std::string(32, ']')));
  CHECK_FALSE(is_json(std::string(33, '[') + std::string(33, ']')));
  CHECK_FALSE(is_json(std::string(100'000, '[')));
}

TEST_CASE("only a JSON object is accepted as one") {
  CHECK(is_json_object(" {}"));
  CHECK_FALSE(is_json_object("[{}]"));
  CHECK_FALSE(is_json_object("{} {}"));
  CHECK_FALSE(is_json_object(""));
}

TEST_CASE("printable text is within the limit and has no control characters") {
  CHECK(is_printable("a worker, host 7", 16));
  CHECK_FALSE(is_printable("a worker, host 77", 16));
  CHECK_FALSE(is_printable("a\nb", 16));
  CHECK_FALSE(is_printable("a\x1b[31m", 16));
  CHECK_FALSE(is_printable("\xff", 16));
  CHECK(is_printable("\u00e9 \u4f60 \U0001f600", 16));
}

TEST_CASE("characters that control a terminal or change the direction of text are not printable") {
  for (const char* text : {"\u007f", "\u0080", "\u009b31m", "\u009f", "\u061c", "\u200e", "\u2028",
                           "\u2029", "\u202a", "\u202e", "\u2066", "\u2069"})
    CHECK_FALSE(is_printable(text, 16));
  for (const char* text : {"\u00a0", "\u061b", "\u2010", "\u2027", "\u202f", "\u2065", "\u206a"})
    CHECK(is_printable(text, 16));
}

TEST_CASE("a character has a code point and bytes, or no bytes") {
  const auto is = [](std::string_view text, std::size_t size, char32_t code) {
    const Character character = first_character(text);
    return character.size == size && (size == 0 || character.code == code);
  };
  CHECK(is("ab", 1, U'a'));
  CHECK(is("\u00e9", 2, 0xe9));
  CHECK(is("\u4f60x", 3, 0x4f60));
  CHECK(is("\U0010ffff", 4, 0x10ffff));
  CHECK(is("\xe2\x82", 0, 0));
  CHECK(is("\xff", 0, 0));
}

TEST_CASE("a name has 1 to 128 plain characters") {
  CHECK(is_name("Az09._-"));
  CHECK(is_name(std::string(128, 'a')));
  for (const auto& name :
       {""s, std::string(129, 'a'), "a b"s, "a/b"s, "a\"b"s, "a\0b"s, "\xc3\xa9"s})
    CHECK_FALSE(is_name(name));
}
