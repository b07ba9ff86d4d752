// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace millrace::test {

// The little-endian bytes of some values.
template <class T>
std::vector<std::byte> bytes_of(std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  return {bytes.begin(), bytes.end()};
}
template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  return bytes_of(std::span<const T>(values));
}
template <class T>
std::vector<std::byte> bytes_of(std::initializer_list<T> values) {
  return bytes_of(std::span<const T>(values.begin(), values.size()));
}

// The lowest bytes of a number, little-endian.
inline std::string number(std::uint64_t value, std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i, value >>= 8) text += static_cast<char>(value);
  return text;
}

// The values that `bytes` contain. Requires: the size is a multiple of that of a value.
template <class T>
std::vector<T> values_of(Bytes bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

}  // namespace millrace::test
