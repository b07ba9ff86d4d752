// SPDX-License-Identifier: Apache-2.0
#include "transport/access/token.h"

#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <new>
#include <stdexcept>

#include "transport/base64/base64.h"

namespace millrace {

TokenDigest digest_of(std::string_view token) {
  TokenDigest digest;
  if (EVP_Digest(token.data(), token.size(), digest.data(), nullptr, EVP_sha256(), nullptr) != 1)
    throw std::bad_alloc();  // the only cause of a failure
  return digest;
}

std::string to_hex(const TokenDigest& digest) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : digest) (text += digits[byte >> 4]) += digits[byte & 15];
  return text;
}

std::string new_token() {
  std::array<std::uint8_t, 32> bytes;
  if (RAND_bytes(bytes.data(), int{bytes.size()}) != 1)
    throw std::runtime_error("the system has no random bytes");
  std::string token = base64(std::string_view(reinterpret_cast<char*>(bytes.data()), bytes.size()));
  token.pop_back();  // the padding
  std::ranges::replace(token, '+', '-');
  std::ranges::replace(token, '/', '_');
  return token;
}

}  // namespace millrace
