// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace millrace {

// Bytes as base64 (RFC 4648), with padding.
std::string base64(std::string_view bytes);

// Decodes base64 with padding into `into`, which keeps its memory, and returns the bytes there.
// nullopt if `text` is not base64: other characters, white space within it, or a wrong length.
std::optional<Bytes> decode_base64(std::string_view text, std::vector<std::byte>& into);

// The same in the alphabet for URLs (RFC 4648, section 5), without padding. Only one text decodes
// to the same bytes: nullopt for any other.
std::string base64url(std::string_view bytes);
std::optional<Bytes> decode_base64url(std::string_view text, std::vector<std::byte>& into);

}  // namespace millrace
