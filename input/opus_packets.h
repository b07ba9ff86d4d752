// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/bytes.h"

struct OpusDecoder;

namespace millrace {

// Decodes Opus packets into floats. Confined to one thread. No allocation after construction.
class OpusPackets {
 public:
  static constexpr std::uint32_t most_packet_ms = 120;
  // The most floats of a packet: 120 ms at 48 kHz with two channels.
  static constexpr std::size_t most_values = 48 * most_packet_ms * 2;
  using Decoded = std::array<float, most_values>;

  // The rate at which packets for a pipeline of rate `wanted` are decoded: 8, 12, 16, 24 or 48 kHz.
  static std::uint32_t rate_for(double wanted);
  // The bytes that a decoder allocates.
  static std::size_t bytes(std::uint32_t channels);

  // Requires: one or two channels, and a rate of rate_for(). Throws std::bad_alloc.
  OpusPackets(std::uint32_t rate, std::uint32_t channels);

  std::uint64_t most_frames() const { return std::uint64_t{rate_} * most_packet_ms / 1000; }

  // The packet's frames with interleaved channels, in `to`. nullopt if the decoder refuses the
  // packet, or if it is longer than 120 ms, which libopus does not measure.
  std::optional<std::span<const float>> decode(Bytes packet, Decoded& to);

  // The length of the last packet whose header was valid, in frames; 20 ms before the first.
  std::uint64_t frames_of_packet() const { return frames_of_packet_; }

  // The next packet is decoded like the first of a stream.
  void begin_anew();

 private:
  struct Destroy {
    void operator()(OpusDecoder* decoder) const;
  };

  const std::uint32_t rate_;
  const std::uint32_t channels_;
  std::unique_ptr<OpusDecoder, Destroy> decoder_;
  std::uint64_t frames_of_packet_;
};

}  // namespace millrace
