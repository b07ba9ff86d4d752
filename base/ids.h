// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <type_traits>

namespace millrace {

// Numbers of distinct types, so that they cannot be mixed up. Ids of streams and batches are never
// used twice by one process. A slot is the index of one stream's state in one worker's memory,
// 0 <= slot < slots.
enum class StreamId : std::uint64_t {};
enum class BatchId : std::uint64_t {};
enum class LaneId : std::uint64_t {};
enum class Slot : std::uint32_t {};

// The name of a stream for its life, over all its connections: 128 random bits, drawn when it is
// opened. No process draws one that another has drawn.
struct StreamKey {
  std::array<std::uint8_t, 16> bytes{};

  auto operator<=>(const StreamKey&) const = default;
};

// The plain number, for messages, array indices and logs.
template <class Id>
requires std::is_enum_v<Id>
constexpr auto number(Id id) { return static_cast<std::underlying_type_t<Id>>(id); }

}  // namespace millrace
