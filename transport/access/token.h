// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "transport/access/hex.h"

namespace millrace {

// A token is a secret that a client presents. Files and the memory of the service have only its
// digest.

// Longer tokens are refused, in bytes.
inline constexpr std::size_t longest_token = 4096;

using TokenDigest = ThirtyTwoBytes;  // SHA-256

// Throws std::bad_alloc.
TokenDigest digest_of(std::string_view token);

// 32 random bytes in base64url without padding, so that it may also be a WebSocket subprotocol.
// Throws std::runtime_error if the system has no randomness.
std::string new_token();

}  // namespace millrace
