// SPDX-License-Identifier: Apache-2.0
// A resume token that a client presents, and a file of keys.
#include "transport/access/resume_keys.h"

#include <string>

#include "tests/fuzz/target.h"

namespace millrace {
namespace {

using fuzz::require;

constexpr Duration now = std::chrono::seconds(1'800'000'000);
constexpr ResumeSubject stream{.name = "call-7", .pipeline = "asr", .tenant = "alice"};

const ResumeKeys& keys() {
  static const ResumeKeys keys =
      *ResumeKeys::parse("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");
  return keys;
}

// The only token that these keys have signed.
const std::string& signed_token() {
  static const std::string text =
      keys().sign({.epoch = 0x01020304, .opening = 0, .stream = {{1, 2, 3}}}, stream, now);
  return text;
}

void check_token(std::string_view text) {
  const auto token = keys().verify(text, stream, now);
  require(token.has_value() == (text == signed_token()), "only a signed token is right");
  require(token || token.error() != ResumeFault::too_old, "a MAC is right before an age counts");
}

// The signed token with edits that the input chooses.
void check_edits(const std::uint8_t* bytes, std::size_t size) {
  std::string text = signed_token();
  fuzz::Choices choices(bytes, size);
  while (!choices.empty()) {
    const std::size_t at = choices.number(text.size() - 1);
    text[at] = static_cast<char>(choices.byte());
  }
  check_token(text);
}

void check_keys(std::string_view text) {
  const auto read = ResumeKeys::parse(text);
  if (!read) return require(!read.error().empty(), "an error has a reason");
  const ResumeToken token{.epoch = 1, .opening = 2, .stream = {}};
  require(read->verify(read->sign(token, stream, now), stream, now) == token,
          "keys verify their tokens");
}

}  // namespace
}  // namespace millrace

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace millrace;
  check_token(fuzz::text_of(bytes, size));
  check_edits(bytes, size);
  check_keys(fuzz::text_of(bytes, size));
  return 0;
}
