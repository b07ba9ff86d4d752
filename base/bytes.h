// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace millrace {

// Views of memory that the caller keeps alive.
using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

// The same memory as text, and as bytes.
inline std::string_view text_in(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline Bytes bytes_in(std::string_view text) { return std::as_bytes(std::span(text)); }

}  // namespace millrace
