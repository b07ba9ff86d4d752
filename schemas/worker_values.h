// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "schemas/wire_error.h"

// Limits and functions that the decoders of both directions of worker.fbs share. Only their sources
// include it.
namespace millrace::worker_protocol {

// Ranges. 2^53 - 1 is the largest integer that every JSON reader keeps exactly.
inline constexpr std::uint64_t max_position = std::numeric_limits<std::int64_t>::max();
inline constexpr std::int64_t max_mark = (std::int64_t{1} << 53) - 1;
inline constexpr std::uint32_t max_count = std::numeric_limits<std::int32_t>::max();
inline constexpr std::size_t max_name = 256, max_refusal = 4096, max_chunk = 65536,
                             max_options = 4096;
inline constexpr std::size_t max_details = 65536;
inline constexpr std::uint8_t all_flags = 127, reset_flag = 2;

// Splits a text into consecutive pieces. next() is nullopt if less text is left.
class Pieces {
 public:
  explicit Pieces(std::string_view text) : rest_(text) {}

  std::optional<std::string_view> next(std::uint32_t length) {
    if (length > rest_.size()) return std::nullopt;
    const std::string_view piece = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return piece;
  }
  bool empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

inline bool fits(std::uint32_t n, std::uint32_t least, std::uint32_t most) {
  return n >= least && n <= most;
}

template <class Message, class Any>
Result<Any, WireError> checked(std::optional<Message> message) {
  if (!message) return WireError::meaning;
  return Any(std::move(*message));
}

}  // namespace millrace::worker_protocol
