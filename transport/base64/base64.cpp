// SPDX-License-Identifier: Apache-2.0
#include "transport/base64/base64.h"

#include <openssl/evp.h>

#include <algorithm>

namespace millrace {
namespace {

const unsigned char* input(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

std::string base64(std::string_view bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');  // OpenSSL adds a zero
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), input(bytes),
                                   static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(size));
  return text;
}

// OpenSSL ignores white space around the text, ends at '-', takes '=' anywhere for zeros, and
// counts the bytes that padding stands for.
std::optional<Bytes> decode_base64(std::string_view text, std::vector<std::byte>& into) {
  const std::string_view digits = text.substr(0, text.find('='));
  const std::size_t padding = text.size() - digits.size();
  const bool padded = padding == 0 || text.ends_with(padding == 1 ? "=" : "==");
  const bool spaced =
      !text.empty() && (text.front() <= ' ' || digits.empty() || digits.back() <= ' ');
  const bool ends_early = text.find('-') != text.npos;
  if (text.size() % 4 != 0 || padding > 2 || !padded || spaced || ends_early) return std::nullopt;
  into.resize(std::max(into.size(), text.size() / 4 * 3));
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(into.data()), input(text),
                                   static_cast<int>(text.size()));
  if (size < 0) return std::nullopt;
  return Bytes(into).first(static_cast<std::size_t>(size) - padding);
}

std::string base64url(std::string_view bytes) {
  std::string text = base64(bytes);
  std::erase(text, '=');
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  return text;
}

std::optional<Bytes> decode_base64url(std::string_view text, std::vector<std::byte>& into) {
  std::string padded(text);
  std::ranges::replace(padded, '-', '+');
  std::ranges::replace(padded, '_', '/');
  padded.resize((padded.size() + 3) / 4 * 4, '=');
  const auto bytes = decode_base64(padded, into);
  if (!bytes || base64url(text_in(*bytes)) != text) return std::nullopt;
  return bytes;
}

}  // namespace millrace
