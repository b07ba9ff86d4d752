// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"

namespace millrace::bench {

inline constexpr std::size_t packet_frames = 1600;  // 100 ms at 16 kHz, s16 mono
inline constexpr std::size_t packet_bytes = packet_frames * 2;

// What a packet says of itself in its first samples.
struct PacketHead {
  Time due;   // when the schedule wanted it sent
  Time sent;  // when it was: the last thing before it is given to the connection
  std::uint32_t stream = 0;
  std::uint32_t number = 0;  // in its stream, from 0
};

// Packets of random samples that whoever receives them can tell from any others: loss, doubling
// and damage show by content. Immutable after construction.
class Packets {
 public:
  Packets();

  // Requires: packet.size() == packet_bytes, as below.
  void write(MutableBytes packet, std::uint32_t stream, std::uint32_t number, Time due) const;
  // Nothing for what write() did not write.
  std::optional<PacketHead> read(Bytes packet) const;

 private:
  Bytes payload(std::uint32_t stream, std::uint32_t number) const;

  std::vector<std::byte> random_;
};

}  // namespace millrace::bench
