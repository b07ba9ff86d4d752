// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "transport/access/hex.h"
#include "transport/access/resume_token.h"

namespace millrace {

// The secrets that sign resume tokens: the first key signs, and all verify. So the keys of many
// services can be changed, one service after the other, and no stream is lost: the new key is added
// behind the old one, then becomes the first, and the old one is removed last.
//
// A token is 64 bytes in base64url without padding. Numbers are big endian:
//
//   bytes  content
//   4      first bytes of the SHA-256 of the key: which key signed
//   4      epoch
//   4      opening, a random number
//   4      time of issue, in seconds since 1970-01-01 UTC, until 2106
//   16     StreamKey
//   32     HMAC-SHA256 of the 32 bytes before it, and of the name, the pipeline and the tenant of
//          the stream, each behind its length in 8 bytes
//
// Immutable after construction.
class ResumeKeys {
 public:
  static constexpr std::size_t most_keys = 8;

  // One new key. Throws std::runtime_error if the system has no randomness.
  static ResumeKeys random();
  // Each line is one key: 64 hexadecimal digits, which must be random. Empty lines and lines that
  // begin with # are ignored. There must be 1 to 8 keys, and no key twice. The error has the number
  // of the line, and does not repeat it.
  static Result<ResumeKeys, std::string> parse(std::string_view text);
  // Parses a file that read_secret_file() accepts, of at most 64 KiB.
  static Result<ResumeKeys, std::string> read(const std::string& path);

  // `now`: wall clock time since 1970. Throws std::bad_alloc, as verify() does.
  std::string sign(const ResumeToken& token, const ResumeSubject& stream, Duration now) const;

  // The token in this text, if sign() of these keys wrote it for this stream. A time of issue after
  // `now` is accepted: the clocks of two services may differ. The time of the comparison does not
  // depend on how many bytes are right.
  Result<ResumeToken, ResumeFault> verify(std::string_view text, const ResumeSubject& stream,
                                          Duration now) const;

  bool operator==(const ResumeKeys&) const = default;

 private:
  using KeyId = std::array<std::uint8_t, 4>;
  struct Key {
    explicit Key(const ThirtyTwoBytes& bytes);
    bool operator==(const Key&) const = default;

    ThirtyTwoBytes secret;
    KeyId id;
  };

  ResumeKeys() = default;
  const Key* find(std::string_view id) const;

  std::vector<Key> keys_;  // not empty, with distinct ids
};

}  // namespace millrace
