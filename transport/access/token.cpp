// SPDX-License-Identifier: Apache-2.0
#include "transport/access/token.h"

#include <openssl/evp.h>

#include <new>
#include <span>

#include "base/bytes.h"
#include "transport/access/random_bytes.h"
#include "transport/base64/base64.h"

namespace millrace {

TokenDigest digest_of(std::string_view token) {
  TokenDigest digest;
  if (EVP_Digest(token.data(), token.size(), digest.data(), nullptr, EVP_sha256(), nullptr) != 1)
    throw std::bad_alloc();  // the only cause of a failure
  return digest;
}

std::string new_token() {
  std::array<std::uint8_t, 32> bytes;
  fill_random(bytes);
  return base64url(text_in(std::as_bytes(std::span(bytes))));
}

}  // namespace millrace
