// SPDX-License-Identifier: Apache-2.0
#include "transport/access/resume_keys.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/temporary_directory.h"
#include "transport/access/random_bytes.h"
#include "transport/base64/base64.h"

using namespace millrace;
using namespace std::chrono_literals;
using Catch::StartsWith;

namespace {

const std::string first_key = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const std::string second_key(64, 'a'), third_key(64, '3');

ResumeKeys keys_of(const std::string& text) {
  auto keys = ResumeKeys::parse(text);
  INFO((keys ? "" : keys.error()));
  REQUIRE(keys.has_value());
  return *std::move(keys);
}

std::string key_error(const std::string& text) {
  const auto keys = ResumeKeys::parse(text);
  return keys ? "" : keys.error();
}

constexpr Duration now = 1'800'000'000s;
const ResumeSubject call{.name = "call-7", .pipeline = "asr", .tenant = "alice"};

ResumeToken token_of(std::uint32_t epoch) {
  ResumeToken token{.epoch = epoch, .opening = 0x05060708, .stream = {}};
  for (std::uint8_t i = 0; i < 16; ++i) token.stream.bytes[i] = static_cast<std::uint8_t>(0xa0 + i);
  return token;
}

std::optional<ResumeToken> verified(const ResumeKeys& keys, const std::string& text,
                                    const ResumeSubject& stream = call) {
  const auto token = keys.verify(text, stream, now);
  return token ? std::optional(*token) : std::nullopt;
}

// The fault; nullopt if the token is right.
std::optional<ResumeFault> fault(const ResumeKeys& keys, const std::string& text,
                                 const ResumeSubject& stream = call, Duration at = now) {
  const auto token = keys.verify(text, stream, at);
  return token ? std::nullopt : std::optional(token.error());
}

// The same text with another value of byte `i` of the decoded token.
std::string with_byte(const std::string& text, std::size_t i, unsigned change) {
  std::vector<std::byte> memory;
  std::string bytes(text_in(*decode_base64url(text, memory)));
  bytes[i] = static_cast<char>(static_cast<std::uint8_t>(bytes[i]) ^ change);
  return base64url(bytes);
}

}  // namespace

// Python: key = bytes(range(32)), head = sha256(key).digest()[:4] + struct.pack(">III", 0x01020304,
// 0x05060708, 1800000000) + bytes(range(0xa0, 0xb0)), then urlsafe_b64encode(head + hmac(key, head
// + fields)).
TEST_CASE("a token has the format of its description") {
  const std::string text =
      "Yw3NKQECAwQFBgcIa0nSAKChoqOkpaanqKmqq6ytrq8YNwa8GQsjRkRW9OAw8tbEh4Lce7wfsodKvdehL7vu0Q";
  CHECK(keys_of(first_key).sign(token_of(0x01020304), call, now) == text);
  CHECK(verified(keys_of(first_key), text) == token_of(0x01020304));
}

TEST_CASE("a token is verified as it was signed") {
  const ResumeKeys keys = ResumeKeys::random();
  for (const std::uint32_t epoch : {0u, 1u, 0x80000000u, 0xffffffffu}) {
    const ResumeToken token{.epoch = epoch, .opening = new_opening(), .stream = new_stream_key()};
    for (const ResumeSubject& stream : {call, ResumeSubject{}}) {
      const std::string text = keys.sign(token, stream, now);
      CHECK(text.size() == resume_token_size);
      CHECK(verified(keys, text, stream) == token);
    }
  }
}

TEST_CASE("a token with any bit changed is refused") {
  const ResumeKeys keys = keys_of(first_key);
  const std::string text = keys.sign(token_of(7), call, now);
  for (std::size_t i = 0; i < 64; ++i)
    for (unsigned bit = 1; bit < 256; bit *= 2) {
      CAPTURE(i, bit);
      CHECK(fault(keys, with_byte(text, i, bit)) ==
            (i < 4 ? ResumeFault::unknown_key : ResumeFault::wrong_mac));
    }
}

TEST_CASE("a token is of one stream") {
  const ResumeKeys keys = keys_of(first_key);
  const std::string text = keys.sign(token_of(7), call, now);
  const ResumeSubject others[] = {{"call-8", "asr", "alice"}, {"call-7", "vad", "alice"},
                                  {"call-7", "asr", "bob"},   {"call-7", "asr", ""},
                                  {"asr", "call-7", "alice"}, {"call-7a", "sr", "alice"},
                                  {"call-7", "asra", "lice"}, {"call-7asralice", "", ""}};
  for (const ResumeSubject& other : others) {
    CAPTURE(other.name, other.pipeline, other.tenant);
    CHECK(fault(keys, text, other) == ResumeFault::wrong_mac);
  }
  CHECK_FALSE(fault(keys, text, call));
}

TEST_CASE("other text is malformed") {
  const ResumeKeys keys = keys_of(first_key);
  const std::string text = keys.sign(token_of(7), call, now);
  const auto replaced = [&](std::size_t at, char by) {
    return std::string(text).replace(at, 1, 1, by);
  };
  for (const std::string& wrong :
       {std::string(), text.substr(1), text + "A", text + "==", std::string(86, ' '),
        std::string(86, '='), replaced(3, '+'), replaced(40, '/'), replaced(0, '\0'),
        replaced(85, '='), replaced(85, '\n')}) {
    CAPTURE(wrong);
    CHECK(fault(keys, wrong) == ResumeFault::malformed);
  }
  // The last character has 2 bits of the token, and 4 that must be 0.
  CHECK_THAT(std::string("AQgw"), Catch::Contains(text.substr(85)));
  CHECK(fault(keys, replaced(85, static_cast<char>(text[85] + 1))) == ResumeFault::malformed);
}

TEST_CASE("a token is too old five hours after its issue and may be of the future") {
  const ResumeKeys keys = keys_of(first_key);
  const std::string text = keys.sign(token_of(7), call, now + 900ms);
  CHECK_FALSE(fault(keys, text, call, now + 5h));
  CHECK_FALSE(fault(keys, text, call, now + 5h + 999ms));
  CHECK(fault(keys, text, call, now + 5h + 1s) == ResumeFault::too_old);
  CHECK(fault(keys, with_byte(text, 63, 1), call, now + 6h) == ResumeFault::wrong_mac);
  CHECK_FALSE(fault(keys, text, call, now - 2h));
  CHECK_FALSE(fault(keys, text, call, 0s));
}

TEST_CASE("the first key of a file signs and all verify") {
  const std::string by_one = keys_of(first_key).sign(token_of(7), call, now);
  const std::string by_two = keys_of(second_key).sign(token_of(7), call, now);
  const ResumeKeys both = keys_of("# keys\n\n" + second_key + "\r\n  " + first_key + "\t");
  CHECK(both.sign(token_of(7), call, now) == by_two);
  CHECK_FALSE(fault(both, by_two));
  CHECK_FALSE(fault(both, by_one));
  CHECK(fault(keys_of(third_key), by_one) == ResumeFault::unknown_key);
  CHECK(fault(ResumeKeys::random(), by_one) == ResumeFault::unknown_key);
}

TEST_CASE("an error in the keys names the line and does not repeat it") {
  const std::string must = "must be a key of 64 hexadecimal digits";
  for (const std::string& wrong :
       {first_key.substr(1), first_key + "0", "g" + first_key.substr(1), first_key + " alice"})
    CHECK(key_error("# secret\n" + wrong) == "line 2: " + must);
  CHECK(key_error("") == "has no key");
  CHECK(key_error("\n# " + first_key + "\n") == "has no key");
  CHECK(key_error(second_key + "\n" + std::string(64, 'A')) ==
        "line 2: another line has the same key");
}

TEST_CASE("a file may have eight keys") {
  std::string text;
  for (const char digit : std::string("12345678")) text += std::string(64, digit) + "\n";
  CHECK(key_error(text).empty());
  CHECK(key_error(text + std::string(64, '9')) == "line 9: a file may have 8 keys");
}

TEST_CASE("random keys do not verify the tokens of other ones") {
  const ResumeKeys keys = ResumeKeys::random();
  const std::string text = keys.sign(token_of(7), call, now);
  CHECK_FALSE(fault(keys, text));
  CHECK(fault(ResumeKeys::random(), text) == ResumeFault::unknown_key);
}

TEST_CASE("keys are read from a file that only its owner may read") {
  const TemporaryDirectory folder;
  const std::string path = folder / "key";
  std::ofstream(path) << first_key << '\n';
  REQUIRE(::chmod(path.c_str(), 0600) == 0);
  CHECK(*ResumeKeys::read(path) == keys_of(first_key));
  REQUIRE(::chmod(path.c_str(), 0644) == 0);
  CHECK_THAT(ResumeKeys::read(path).error(), Catch::StartsWith("has mode 0644"));
}
