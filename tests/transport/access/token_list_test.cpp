// SPDX-License-Identifier: Apache-2.0
#include "transport/access/token_list.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "tests/support/temporary_directory.h"

using namespace millrace;
using Catch::Contains;
using Catch::StartsWith;

namespace {

// printf abc | sha256sum
const std::string abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
const std::string zeros(64, '0');

std::string error_of(const std::string& text) {
  const auto list = TokenList::parse(text);
  return list ? "" : list.error();
}

}  // namespace

TEST_CASE("a list accepts the tokens whose digests it has") {
  const auto list = TokenList::parse("# clients\n\n" + abc + " alice\r\n  " + zeros + "\tbob ");
  REQUIRE(list.has_value());
  CHECK(list->accepts("abc") == "alice");
  for (const std::string_view wrong : {"", "ab", "abcd", "ABC", "abc "})
    CHECK_FALSE(list->accepts(wrong));
  CHECK_FALSE(list->accepts(abc));
}

TEST_CASE("an empty list accepts no token") {
  for (const char* text : {"", "\n", "# abc\n"}) {
    const auto list = TokenList::parse(text);
    REQUIRE(list.has_value());
    CHECK_FALSE(list->accepts(""));
    CHECK_FALSE(list->accepts("abc"));
  }
}

TEST_CASE("digests may have capital digits") {
  std::string capitals = abc;
  for (char& c : capitals)
    if (c >= 'a') c = static_cast<char>(c - 'a' + 'A');
  CHECK(TokenList::parse(capitals + " alice")->accepts("abc") == "alice");
}

TEST_CASE("an error names the line, and does not repeat it") {
  CHECK_THAT(error_of("# one\n" + abc), StartsWith("line 2: must be the SHA-256"));
  CHECK_THAT(error_of(zeros + " a\nsecret bob"), StartsWith("line 2: ") && !Contains("secret"));
  CHECK_THAT(error_of(abc.substr(1) + " alice"), StartsWith("line 1: "));
  CHECK_THAT(error_of(abc + "0 alice"), StartsWith("line 1: "));
  CHECK_THAT(error_of("g" + abc.substr(1) + " alice"), StartsWith("line 1: "));
  CHECK_THAT(error_of(abc + " alice smith"), StartsWith("line 1: "));
  CHECK_THAT(error_of(abc + " " + std::string(129, 'a')), StartsWith("line 1: "));
  CHECK_THAT(error_of(abc + " al\x1b"
                            "ice"),
             StartsWith("line 1: "));
  CHECK_THAT(error_of(abc + " al\xc3\xa9"), StartsWith("line 1: "));
  CHECK(error_of(abc + " " + std::string(128, 'a')).empty());
}

TEST_CASE("a token or a name that occurs twice is an error") {
  CHECK(error_of(abc + " alice\n" + abc + " bob") == "line 2: another line has the same token");
  CHECK(error_of(abc + " alice\n" + zeros + " alice") == "line 2: another line has the same name");
}

TEST_CASE("a list is read from a regular file, and not from a pipe") {
  const TemporaryDirectory folder;
  const std::string path = folder / "tokens";
  CHECK_THAT(TokenList::read(path).error(), StartsWith("cannot be read: No such file"));
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK(TokenList::read(path).error() == "is not a regular file");
  CHECK(TokenList::read(folder.path()).error() == "is not a regular file");
}

TEST_CASE("a new token has 43 characters of base64url, and its digest is that of its text") {
  const std::string token = new_token();
  CHECK(token.size() == 43);
  CHECK(token.find_first_not_of(
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") == token.npos);
  CHECK(new_token() != token);
  CHECK(to_hex(digest_of("abc")) == abc);
  CHECK(TokenList::parse(to_hex(digest_of(token)) + " new")->accepts(token) == "new");
}
