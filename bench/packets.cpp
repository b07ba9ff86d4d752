// SPDX-License-Identifier: Apache-2.0
#include "bench/packets.h"

#include <algorithm>
#include <cstring>
#include <random>

namespace millrace::bench {

namespace {

struct WireHead {
  std::int64_t due;
  std::int64_t sent;
  std::uint32_t stream;
  std::uint32_t number;
};

constexpr std::size_t random_bytes = 64 << 10;
constexpr std::size_t payload_bytes = packet_bytes - sizeof(WireHead);

}  // namespace

Packets::Packets() : random_(random_bytes) {
  std::mt19937 random(1);
  std::ranges::generate(random_, [&] { return static_cast<std::byte>(random()); });
}

Bytes Packets::payload(std::uint32_t stream, std::uint32_t number) const {
  const std::size_t place = stream * 7919u + number * 104'729u;
  return Bytes(random_).subspan(place % (random_bytes - payload_bytes), payload_bytes);
}

void Packets::write(MutableBytes packet, std::uint32_t stream, std::uint32_t number,
                    Time due) const {
  const Bytes samples = payload(stream, number);
  std::ranges::copy(samples, packet.begin() + sizeof(WireHead));
  const WireHead head{to_wire(due), to_wire(Clock::now()), stream, number};
  std::memcpy(packet.data(), &head, sizeof head);
}

std::optional<PacketHead> Packets::read(Bytes packet) const {
  WireHead head;
  std::memcpy(&head, packet.data(), sizeof head);
  if (!std::ranges::equal(payload(head.stream, head.number), packet.subspan(sizeof head)))
    return std::nullopt;
  return PacketHead{from_wire(head.due), from_wire(head.sent), head.stream, head.number};
}

}  // namespace millrace::bench
