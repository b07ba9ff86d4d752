// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "transport/access/token.h"

namespace millrace {

// The tokens in a file, as digests, each with a name. A list without tokens accepts none.
// Immutable after construction.
class TokenList {
 public:
  // Each line has the SHA-256 of a token in hexadecimal, and a name of at most 128 printable ASCII
  // characters without spaces. Empty lines and lines that begin with # are ignored. A digest or a
  // name that occurs twice is an error. The error has the number of the line.
  static Result<TokenList, std::string> parse(std::string_view text);
  // Parses a file that read_small_file() accepts, of at most 16 MiB.
  static Result<TokenList, std::string> read(const std::string& path);

  // The name of the token; nullopt if the list does not have the token.
  std::optional<std::string_view> accepts(std::string_view token) const {
    return accepts(digest_of(token));
  }
  std::optional<std::string_view> accepts(const TokenDigest& digest) const;

  bool operator==(const TokenList&) const = default;

 private:
  std::vector<std::pair<TokenDigest, std::string>> names_;  // ascending
};

}  // namespace millrace
