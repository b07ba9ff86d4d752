// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace millrace {

// The digest of a token, or a key.
using ThirtyTwoBytes = std::array<std::uint8_t, 32>;

// As 64 hexadecimal digits.
std::string to_hex(const ThirtyTwoBytes& bytes);
// Capital digits count too; nullopt for any other text.
std::optional<ThirtyTwoBytes> from_hex(std::string_view hex);

}  // namespace millrace
