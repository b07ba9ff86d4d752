// SPDX-License-Identifier: Apache-2.0
#include "transport/access/hex.h"

namespace millrace {
namespace {

std::optional<std::uint8_t> value_of(char digit) {
  if (digit >= '0' && digit <= '9') return static_cast<std::uint8_t>(digit - '0');
  const char lower = static_cast<char>(digit | 0x20);
  if (lower >= 'a' && lower <= 'f') return static_cast<std::uint8_t>(lower - 'a' + 10);
  return std::nullopt;
}

}  // namespace

std::string to_hex(const ThirtyTwoBytes& bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) (text += digits[byte >> 4]) += digits[byte & 15];
  return text;
}

std::optional<ThirtyTwoBytes> from_hex(std::string_view hex) {
  ThirtyTwoBytes bytes;
  if (hex.size() != 2 * bytes.size()) return std::nullopt;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto high = value_of(hex[2 * i]), low = value_of(hex[2 * i + 1]);
    if (!high || !low) return std::nullopt;
    bytes[i] = static_cast<std::uint8_t>(*high << 4 | *low);
  }
  return bytes;
}

}  // namespace millrace
